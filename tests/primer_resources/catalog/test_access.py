"""Who may see what, for people who ask why."""

from sqlalchemy import update

from primer_resources.catalog.schema import documents
from tests.primer_resources.catalog.world import SOURCE, TENANT, VERSION, World, source


def test_a_document_shows_its_groups_and_whether_its_rows_follow(world: World) -> None:
    world.acl("acl-a", "staff", "board")
    world.acl("acl-b", "hr")
    document = world.document("a.md")
    assert world.catalog.access.of_document(document).rows == ()
    world.index(document, 1, ["c1"])
    found = world.catalog.access.of_document(document)
    assert (found.readable, found.error, found.source, found.path) == (True, None, SOURCE, "a.md")
    assert [(scope.scope, set(scope.groups), scope.path) for scope in found.scopes] == [("acl-a", {"staff", "board"}, "a.md")]
    assert [(row.index_version, row.follow) for row in found.rows] == [(VERSION, True)]
    with world.catalog.database.begin() as connection:
        world.catalog.documents.grant(connection, document, "acl-b", None)
    moved = world.catalog.access.of_document(document)
    assert ([scope.groups for scope in moved.scopes], [row.follow for row in moved.rows]) == ([("hr",)], [False])


def test_what_hides_a_document_is_said(world: World) -> None:
    world.acl("acl-a", "staff")
    document = world.document("a.md")
    unknown = world.document("b.md", acl_id="acl-none")
    assert world.catalog.access.of_document(unknown).error == "its permissions were never read"
    with world.catalog.database.begin() as connection:
        world.catalog.documents.grant(connection, document, "acl-a", "the server said 503")
    found = world.catalog.access.of_document(document)
    assert (found.readable, found.error) == (False, "the server said 503")
    with world.catalog.database.begin() as connection:
        world.catalog.documents.tombstone(connection, world.catalog.documents.living_page(SOURCE, "", 9), world.catalog.now())
    assert world.catalog.access.of_document(document).error == "it is deleted"


def test_the_scopes_of_copies_open_the_same_content(world: World) -> None:
    world.acl("acl-a", "hr")
    world.acl("acl-b", "all")
    first, copy = world.document("hr/a.md"), world.document("all/a.md", acl_id="acl-b")
    world.document("other.md", acl_id="acl-b", content="two")
    with world.catalog.database.begin() as connection:
        connection.execute(update(documents).where(documents.c.doc_id == copy).values(canonical_doc_id=first))
    assert [(scope.groups, scope.path) for scope in world.catalog.access.of_document(first).scopes] == [
        (("hr",), "hr/a.md"),
        (("all",), "all/a.md"),
    ]
    assert [scope.path for scope in world.catalog.access.of_document(copy).scopes] == ["all/a.md", "hr/a.md"]


def test_a_group_opens_scopes_with_their_documents_page_by_page(world: World) -> None:
    world.catalog.sources.add(source("wiki"))
    world.acl("acl-a", "staff", "board")
    world.acl("acl-b", "staff")
    world.acl("acl-c", "hr")
    made = sorted(world.document(f"{n}.md", acl_id="acl-a") for n in range(5))
    hidden = world.document("hidden.md", acl_id="acl-b")
    world.document("secret.md", acl_id="acl-c")
    with world.catalog.database.begin() as connection:
        world.catalog.documents.grant(connection, hidden, "acl-b", "unread")
    access = world.catalog.access
    scopes = access.opened_scopes(TENANT, "staff")
    assert [(scope.source, scope.scope, scope.documents, scope.hidden) for scope in scopes] == [
        (SOURCE, "acl-a", 5, 0),
        (SOURCE, "acl-b", 1, 1),
    ]
    pages, after = [], ""
    while page := access.opened_documents(TENANT, "staff", after, 2):
        pages.append([document.doc_id for document in page])
        after = page[-1].doc_id
    assert [doc_id for ids in pages for doc_id in ids] == made
    assert access.opened_scopes(TENANT, "staff", "wiki") == access.opened_documents(TENANT, "nobody", "", 9) == []
    assert access.opened_scopes("other", "staff") == []
