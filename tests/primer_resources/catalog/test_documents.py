import pytest

from primer_core.ids import doc_id
from primer_resources.catalog.documents import KnownDocument
from tests.primer_resources.catalog.world import HASHES, SOURCE, World, facts, place, source


def known(world: World, document: str) -> KnownDocument:
    return world.catalog.documents.by_id([document])[document]


def tombstone(world: World, document: KnownDocument) -> list[str]:
    with world.catalog.database.begin() as connection:
        return world.catalog.documents.tombstone(connection, [document], world.catalog.now())


def add_again(world: World, path: str, order: int, content: str = "two", bucket: str = "03") -> bool:
    with world.catalog.database.begin() as connection:
        return world.catalog.documents.add(connection, source(), doc_id(SOURCE, path), place(path), facts(order, content, bucket))


def miss(world: World, *doc_ids: str, scan: int) -> None:
    with world.catalog.database.begin() as connection:
        world.catalog.documents.mark_missing(connection, doc_ids, scan)


def test_living_documents_are_found_by_path_within_their_source(world: World) -> None:
    world.catalog.sources.add(source("wiki"))
    one = world.document("a/one.md")
    gone = world.document("a/gone.md")
    tombstone(world, known(world, gone))
    paths = ["a/one.md", "a/gone.md", "a/none.md", *(f"filler-{n}" for n in range(600))]
    assert {path: found.doc_id for path, found in world.catalog.documents.by_path(SOURCE, paths).items()} == {"a/one.md": one}
    assert world.catalog.documents.by_path("wiki", paths) == {}
    assert list(world.catalog.documents.living_ids(SOURCE, 10)) == [one]


def test_a_move_changes_place_and_permissions_and_keeps_version_and_content(world: World) -> None:
    document = world.document("old.md", order=3)
    before = world.row_of(document)
    miss(world, document, scan=4)
    with world.catalog.database.begin() as connection:
        world.catalog.documents.move(connection, document, place("new.md", "acl-b", None, "f2"))
    after = world.row_of(document)
    assert (after.path, after.acl_id, after.fingerprint, after.missing_scan) == ("new.md", "acl-b", "f2", None)
    assert (after.source_version, after.version_order, after.content_hash, after.bucket) == (
        before.source_version,
        before.version_order,
        before.content_hash,
        before.bucket,
    )


def test_a_newer_version_wins_and_an_older_or_equal_one_is_a_no_op(world: World) -> None:
    document = world.document("a.md", order=5)
    assert world.advance(document, 7)
    after = world.row_of(document)
    assert (after.version_order, after.content_hash, after.status) == (7, HASHES["two"], "pending")
    assert not world.advance(document, 6, "three")
    assert not world.advance(document, 7, "three")
    assert world.row_of(document) == after


def test_a_document_keeps_its_first_bucket_for_life(world: World) -> None:
    document = world.document("a.md", bucket="02")
    assert world.advance(document, 2)
    assert world.row_of(document).bucket == "02"
    tombstone(world, known(world, document))
    assert add_again(world, "a.md", order=9, bucket="03")
    assert world.row_of(document).bucket == "02"


def test_a_document_that_could_not_be_read_gets_its_bucket_with_its_first_content(world: World) -> None:
    with world.catalog.database.begin() as connection:
        world.catalog.documents.add(connection, source(), "d", place("a.md"), facts(1, None, None))
        assert world.catalog.documents.bucket(connection, "d") is None
        assert world.catalog.documents.advance(connection, "d", place("a.md"), facts(2, "two", "01"))
        assert world.catalog.documents.bucket(connection, "d") == "01"


def test_a_late_upsert_cannot_revive_a_delete_and_a_newer_one_can(world: World) -> None:
    document = world.document("a.md", order=7)
    assert tombstone(world, known(world, document)) == [document]
    dead = world.row_of(document)
    assert (dead.version_order, dead.status) == (8, "deleted")
    assert dead.deleted_at is not None
    assert not world.advance(document, 9), "an advance is for living documents"
    assert not add_again(world, "a.md", order=7)
    assert not add_again(world, "a.md", order=8)
    assert world.row_of(document) == dead
    assert add_again(world, "a.md", order=9)
    back = world.row_of(document)
    assert (back.deleted_at, back.version_order, back.content_hash) == (None, 9, HASHES["two"])


def test_a_living_document_is_not_added_twice(world: World) -> None:
    document = world.document("a.md", order=1)
    before = world.row_of(document)
    assert not add_again(world, "a.md", order=5)
    assert world.row_of(document) == before


def test_a_document_that_changed_or_came_back_meanwhile_is_not_tombstoned(world: World) -> None:
    changed, back, gone = world.document("changed.md"), world.document("back.md"), world.document("gone.md")
    miss(world, changed, back, gone, scan=5)
    listed = [known(world, each) for each in (changed, back, gone)]
    world.advance(changed, 2)
    with world.catalog.database.begin() as connection:
        world.catalog.documents.mark_present(connection, [back])
        went = world.catalog.documents.tombstone(connection, listed, world.catalog.now(), if_missing=True)
    assert went == [gone]
    assert tombstone(world, listed[2]) == [], "a second time finds it gone"


def test_what_is_missing_is_missing_since_the_first_listing_that_said_so_until_any_settling(world: World) -> None:
    made = [world.document(f"{n}.md") for n in range(5)]
    miss(world, *made, scan=3)
    miss(world, *made, scan=4)
    assert {known(world, each).missing_scan for each in made} == {3}
    with world.catalog.database.begin() as connection:
        world.catalog.documents.grant(connection, made[0], "acl-b", None)
        world.catalog.documents.mark_present(connection, [made[1]])
    world.advance(made[2], 2)
    tombstone(world, known(world, made[3]))
    assert list(world.catalog.documents.missing_ids(SOURCE)) == [made[4]]
    assert world.catalog.documents.count_missing(SOURCE) == 1
    assert [each.doc_id for each in world.catalog.documents.living_page(SOURCE, "", 9, if_missing=True)] == [made[4]]


@pytest.mark.parametrize("page", [1, 2, 100])
def test_pages_of_living_documents_go_on_where_documents_vanish_under_them(world: World, page: int) -> None:
    made = sorted(world.document(f"{n}.md") for n in range(6))
    tombstone(world, known(world, made[1]))
    assert list(world.catalog.documents.living_ids(SOURCE, page)) == [made[0], *made[2:]]
    found, after = [], ""
    while documents := world.catalog.documents.living_page(SOURCE, after, page):
        after = documents[-1].doc_id
        assert len(documents) <= page
        for document in documents:
            found.append(document.doc_id)
            tombstone(world, document)
    assert found == [made[0], *made[2:]]


def test_a_rename_is_looked_for_among_the_living_of_the_same_content(world: World) -> None:
    left, gone, other = world.document("left.md"), world.document("gone.md"), world.document("other.md", content="two")
    tombstone(world, known(world, gone))
    found = world.catalog.documents.with_content(SOURCE, [HASHES["one"]])
    assert [document.doc_id for document in found] == [left]
    assert other not in {document.doc_id for document in found}


def test_permissions_that_could_not_be_read_stand_on_the_document(world: World) -> None:
    document = world.document("a.md")
    with world.catalog.database.begin() as connection:
        world.catalog.documents.move(connection, document, place("a.md", "acl-a", "the server said 503"))
    assert known(world, document).acl_error == "the server said 503"


def test_groups_open_the_acls_that_name_them_and_no_groups_open_nothing(world: World) -> None:
    world.acl("acl-hr", "hr", "board")
    world.acl("acl-all", "all")
    world.acl("acl-nobody")
    acls = world.catalog.acls
    assert acls.open_to("acme", ["hr"]) == {"acl-hr"}
    assert acls.open_to("acme", ["board", "all"]) == {"acl-hr", "acl-all"}
    assert acls.open_to("acme", []) == acls.open_to("acme", ["HR"]) == acls.open_to("other", ["hr"]) == frozenset()


def test_a_folder_shared_anew_is_one_row_and_opens_at_once(world: World) -> None:
    world.acl("acl-hr", "hr", "board")
    world.acl("acl-hr", "hr", "audit")
    assert world.catalog.acls.open_to("acme", ["board"]) == frozenset()
    assert world.catalog.acls.open_to("acme", ["audit"]) == {"acl-hr"}
    world.acl("acl-hr")
    assert world.catalog.acls.open_to("acme", ["hr"]) == frozenset()
    assert world.catalog.acls.of_source(SOURCE)["acl-hr"].allow_groups == ()
