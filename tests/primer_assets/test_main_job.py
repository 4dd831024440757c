"""The main job over a small folder, with the real parser, model and indexes: what a change costs, and what people find after it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from primer.workspace import Workspace
from primer_resources.catalog.lookup import DocumentStatus
from primer_resources.settings import load_settings
from tests.deployment import Deployment, primer, workspace

TOPICS = ("harbour", "orchard", "glacier", "foundry", "library", "vineyard", "quarry", "lighthouse", "aqueduct", "bakery")


def section(number: int, mark: str = "") -> str:
    """A section with a paragraph of its own words, about 60 of them."""
    topic = TOPICS[number % len(TOPICS)]
    sentence = f"The {topic} of district {number} is looked after by crew {number * 7} and {mark} inspected in week {number % 50}."
    return f"## Section {number} on the {topic}\n\n" + " ".join(
        [sentence, *(f"Rule {number}.{n} of the {topic} stands." for n in range(8))]
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One workspace for all of these tests: the model and the parse worker start once. Each test has a source and a group of its own."""
    with workspace(tmp_path_factory.mktemp("main-job") / "home", buckets=2) as made:
        yield made


@pytest.fixture
def place(shared: Workspace, tmp_path: Path, request: pytest.FixtureRequest) -> Deployment:
    """An empty folder as a source."""
    name = f"docs{len(shared.catalog.sources.all())}-{request.node.name[5:25].replace('_', '-')}"
    return Deployment(shared, tmp_path / "docs", name)


def test_a_second_sync_a_touch_and_a_rename_cost_nothing(place: Deployment) -> None:
    for n in range(6):
        place.write(f"folder/page-{n}.md", section(n))
    first = place.sync().counts
    assert (first["scanned"], first["new"], first["indexed"], first["failed"]) == (6, 6, 6, 0)
    assert first["parsed"] == 6
    nothing = {"chunks_new": 0, "chunks_kept": 0, "chunks_gone": 0, "embedded": 0, "parsed": 0, "deleted": 0, "failed": 0}

    again = place.sync().counts
    assert again["unchanged"] == 6
    assert nothing.items() <= again.items()

    for path in (place.folder / "folder").iterdir():
        os.utime(path)
    touched = place.sync().counts
    assert touched["unchanged"] == 6
    assert nothing.items() <= touched.items()

    (place.folder / "folder").rename(place.folder / "renamed")
    renamed = place.sync().counts
    assert renamed["unchanged"] == 6
    assert nothing.items() <= renamed.items()
    assert {hit.path for hit in place.search("crew of the harbour")} <= {f"renamed/page-{n}.md" for n in range(6)}
    assert place.reconcile().agrees


def test_one_edited_paragraph_in_sixty_embeds_at_most_three(place: Deployment) -> None:
    sections = [section(n) for n in range(60)]
    place.write("long.md", "# Long\n\n" + "\n\n".join(sections))
    first = place.sync().counts
    assert first["chunks_new"] >= 60
    sections[30] = section(30, mark="newly")
    place.write("long.md", "# Long\n\n" + "\n\n".join(sections))
    edited = place.sync().counts
    assert 1 <= edited["embedded"] <= 3
    assert edited["changed"] == 1
    assert edited["chunks_new"] == edited["chunks_gone"]
    assert any("newly" in hit.text for hit in place.search("newly inspected in week 30"))


def test_an_equal_paragraph_three_times_is_three_chunks_and_one_removed_leaves_two(place: Deployment) -> None:
    same = "## Terms\n\n" + " ".join(f"Clause {n} binds the lender and the borrower alike." for n in range(60))
    place.write("terms.md", "\n\n".join([same] * 3))
    place.sync()
    doc_id = place.workspace.catalog.lookup.find_document(f"{place.name}/terms.md")[0]

    def texts() -> list[str]:
        version = place.workspace.catalog.deployments.live()
        recipe = version.recipe
        known = place.workspace.catalog.documents.by_id([doc_id])[doc_id]
        made = place.workspace.store.of("default").get_chunks(known.content_hash or "", recipe.parser.version, recipe.chunker.version)
        live = place.workspace.catalog.lookup.chunk_ids(doc_id, version.name)
        assert set(live) == {chunk.id_in(doc_id) for chunk in made}
        return [chunk.text for chunk in made]

    three = texts()
    assert len(three) % 3 == 0
    assert max(three.count(text) for text in three) == 3
    place.write("terms.md", "\n\n".join([same] * 2))
    counts = place.sync().counts
    two = texts()
    assert len(two) == len(three) // 3 * 2
    assert counts["embedded"] == 0
    assert counts["chunks_gone"] == len(three) - len(two)
    assert place.reconcile().agrees


def test_a_moved_link_is_a_new_passage_and_no_embedding(place: Deployment) -> None:
    text = "# Links\n\nSee [the leave policy](https://old.example/{}) before you book a journey of more than two weeks."
    place.write("links.md", text.format("a"))
    place.sync()
    place.write("links.md", text.format("moved"))
    counts = place.sync().counts
    assert counts["changed"] == 1
    assert counts["embedded"] == 0
    assert "moved" in place.search("leave policy")[0].text


def test_an_edit_of_front_matter_and_template_codes_alone_is_no_new_passage(place: Deployment) -> None:
    text = 'Ask {% slack_channel "@" %} about [leave]({% page "/@/" %}) of more than ten days, in writing.'
    page = f'---\ntitle: Leave\nreviewed: @\ntags: [@]\n---\n{{% alert "@" %}}\n{text}\n{{% endalert %}}\n'
    place.write("leave.md", page.replace("@", "spring"))
    assert place.sync().counts["chunks_new"] == 1
    place.write("leave.md", page.replace("@", "autumn"))
    edited = place.sync().counts
    wanted = {"changed": 1, "parsed": 1, "chunks_kept": 1, "chunks_new": 0, "chunks_gone": 0, "embedded": 0}
    assert {name: edited[name] for name in wanted} == wanted
    assert not any("autumn" in hit.text or "spring" in hit.text for hit in place.search("leave of more than ten days"))


def test_what_a_parse_kept_of_the_text_is_known(place: Deployment) -> None:
    place.write("page.html", "<h1>Leave</h1><p>Ask early.</p><script>let x = 1</script>")
    place.sync()
    catalog = place.workspace.catalog
    (doc_id,) = catalog.lookup.find_document(f"{place.name}/page.html")
    found = catalog.lookup.status(doc_id, catalog.deployments.live().name)
    assert (found.text_kept, found.text_losses) == (1.0, {"scripts and styles": 3})


def test_a_deleted_file_is_found_no_more_and_its_rows_leave_after_the_grace(tmp_path: Path) -> None:
    with workspace(tmp_path / "home", buckets=2, purge_grace="1ms") as made:
        place = Deployment(made, tmp_path / "docs", "docs")
        place.write("stays.md", "# Stays\n\nThe ferry leaves at nine.")
        gone = place.write("gone.md", "# Gone\n\nThe secret recipe of the ferry kitchen.")
        place.sync()
        assert place.search("secret recipe")[0].path == "gone.md"
        gone.unlink()
        assert place.sync().counts["deleted"] == 1
        assert {hit.path for hit in place.search("secret recipe")} == {"stays.md"}
        place.sync()
        report = place.reconcile()
        assert report.agrees
        assert (report.vector_rows, report.keyword_rows) == (report.expected, report.expected)


def test_a_file_that_comes_back_older_is_indexed_as_it_is_now(place: Deployment) -> None:
    page = place.write("page.md", "# Page\n\nThe tariff is nine crowns.")
    place.sync()
    page.write_text("# Page\n\nThe tariff is five crowns.")
    os.utime(page, (1_000_000_000, 1_000_000_000))
    assert place.sync().counts["changed"] == 1
    assert "five" in place.search("tariff")[0].text
    page.unlink()
    place.sync()
    place.write("page.md", "# Page\n\nThe tariff is two crowns.")
    os.utime(page, (900_000_000, 900_000_000))
    assert place.sync().counts["new"] == 1
    assert "two" in place.search("tariff")[0].text
    assert place.reconcile().agrees


def test_bad_files_end_with_a_reason_and_the_others_are_indexed(place: Deployment) -> None:
    place.write("good.md", "# Good\n\nThe good page is about the tide.")
    place.write("empty.md", "")
    place.write("cut.docx", "PK\x03\x04 this is no archive")
    (place.folder / "loop").symlink_to(place.folder / "loop")
    (place.folder / "outside.md").symlink_to("/etc/hostname")
    (place.folder / "dangling.md").symlink_to(place.folder / "nowhere")
    (place.folder / os.fsdecode(b"b\xffd.md")).write_bytes(b"# Bad name")
    counts = place.sync().counts
    dead = place.dead()
    assert counts["scanned"] == counts["new"] == counts["indexed"] + counts["failed"] == 7
    assert counts["indexed"] == 1
    assert dead["loop"] == "symlink_loop"
    assert dead["outside.md"] == "outside_root"
    assert dead["empty.md"] == "empty"
    assert dead["cut.docx"] in {"corrupt", "truncated"}
    assert dead["b\\xffd.md"] == "name_not_utf8"
    again = place.sync().counts
    assert (again["unchanged"], again["failed"], again["parsed"]) == (7, 4, 0)  # what could not be read was tried again
    place.write("empty.md", "# No longer empty\n\nNow it says something about eels.")
    assert place.sync().counts["indexed"] == 1
    assert "empty.md" not in place.dead()


def test_many_vanished_documents_are_held_until_a_second_listing_agrees(place: Deployment) -> None:
    for n in range(14):
        place.write(f"page-{n}.txt", f"Page {n} is about the {TOPICS[n % 10]} and nothing else.")
    place.sync()
    for n in range(13):
        (place.folder / f"page-{n}.txt").unlink()
    held = place.sync()
    assert (held.counts["held"], held.counts["deleted"]) == (13, 0)
    assert any("13 of 14" in note for note in held.notes)
    assert len({hit.path for hit in place.search("page about", k=20)}) == 14
    assert place.sync().counts["deleted"] == 13
    assert {hit.path for hit in place.search("page about", k=20)} == {"page-13.txt"}


def test_permissions_follow_the_access_file_and_fail_closed(place: Deployment) -> None:
    access = place.folder.parent / "docs.access.yaml"
    access.write_text(f"groups: [{place.name}]\nfolders:\n  HR: [hr]\n")
    place.write("HR/bands.md", "# Bands\n\nThe salary band of a pilot is seven.")
    place.write("open.md", "# Open\n\nThe salary is paid on the first.")
    place.sync()
    assert {hit.path for hit in place.search("salary")} == {"open.md"}
    assert {hit.path for hit in place.search("salary", (place.name, "hr"))} == {"open.md", "HR/bands.md"}
    assert place.search("salary", ()) == []

    access.write_text(f"groups: [{place.name}]\nfolders:\n  HR: [board]\n")
    changed = place.sync().counts
    assert changed["acl_only"] == 1
    assert (changed["chunks_new"], changed["embedded"], changed["parsed"]) == (0, 0, 0)
    assert {hit.path for hit in place.search("salary", (place.name, "hr"))} == {"open.md"}
    assert {hit.path for hit in place.search("salary", ("board",))} == {"HR/bands.md"}

    access.write_text("groups: everyone: nonsense\n")
    place.write("late.md", "# Late\n\nThe salary of the late shift is higher.")
    assert any("documents are hidden" in note for note in place.sync().notes)
    assert "documents are hidden" in (place.workspace.catalog.sources.get(place.name).last_error or "")
    assert place.search("salary", (place.name, "hr", "board")) == []
    assert place.dead() == {"late.md": "acl_unreadable"}

    access.write_text(f"groups: [{place.name}]\n")
    place.sync()
    assert {hit.path for hit in place.search("salary")} == {"open.md", "HR/bands.md", "late.md"}
    assert place.dead() == {}
    assert place.reconcile().agrees


def test_a_document_moved_to_another_acl_keeps_its_passages_and_is_decided_at_once(place: Deployment) -> None:
    (place.folder.parent / "docs.access.yaml").write_text(f"groups: [{place.name}]\nfolders:\n  HR: [hr]\n")
    place.write("memo.md", "# Memo\n\nThe memo is about the merger of two ferries.")
    place.write("other.md", "# Other\n\nSomething about sheep.")
    place.sync()
    (place.folder / "HR").mkdir()
    (place.folder / "memo.md").rename(place.folder / "HR" / "memo.md")
    counts = place.sync().counts
    assert (counts["acl_only"], counts["embedded"], counts["parsed"]) == (1, 0, 0)
    assert {hit.path for hit in place.search("merger")} == {"other.md"}
    assert place.search("merger", ("hr",))[0].path == "HR/memo.md"
    assert place.reconcile().agrees


def test_both_indexes_hold_the_scope_of_the_document(place: Deployment) -> None:
    from primer_core.ids import acl_id
    from primer_resources.index_base import Scope

    place.write("page.md", "# Page\n\nThe ferry leaves the pier at nine.")
    place.sync()
    catalog, settings = place.workspace.catalog, place.workspace.settings
    tools = place.workspace.toolkit.of(catalog.deployments.live())
    own = frozenset({acl_id(settings.tenant, place.name, "")})
    assert own == catalog.acls.open_to(settings.tenant, [place.name])
    vector = tools.embedder.embed_query("when does the ferry leave")
    for scope, found in (
        (Scope(settings.tenant, own, frozenset({"main"})), 1),
        (Scope(settings.tenant, own, frozenset({"other"})), 0),
        (Scope("other", own), 0),
        (Scope(settings.tenant, frozenset({"other"})), 0),
    ):
        assert len(tools.vectors.search(vector, scope, 10)) == found
        assert len(tools.keywords.search("ferry", scope, 10)) == found


def test_equal_files_are_parsed_and_embedded_once_and_a_copy_takes_over_at_no_cost(place: Deployment) -> None:
    from primer_core.ids import acl_id
    from primer_resources.index_base import Scope

    catalog, tenant, hr = place.workspace.catalog, place.workspace.settings.tenant, f"{place.name}-hr"
    (place.folder.parent / "docs.access.yaml").write_text(f"groups: [{place.name}]\nfolders:\n  HR: [{hr}]\n")
    for path in ("HR/plan.md", "open/plan.md"):
        place.write(path, "# Plan\n\nThe funicular is to be rebuilt in May.\n\n## Cost\n\nThe funicular costs nine crowns.")
    first = place.sync().counts
    assert (first["new"], first["indexed"], first["parsed"]) == (2, 2, 1)
    assert first["embedded"] == first["chunks_new"] > 0
    for groups, path in (((place.name,), "open/plan.md"), ((hr,), "HR/plan.md")):
        assert {hit.path for hit in place.search("funicular", groups)} == {path}
    tools = place.workspace.toolkit.of(catalog.deployments.live())
    for scope in ("", "HR"):
        seen = Scope(tenant, frozenset({acl_id(tenant, place.name, scope)}))
        assert len(tools.vectors.search(tools.embedder.embed_query("funicular"), seen, 50)) == first["chunks_new"]
        assert len(tools.keywords.search("funicular", seen, 50)) == first["chunks_new"]

    def status(path: str) -> DocumentStatus:
        (doc_id,) = catalog.lookup.find_document(f"{place.name}/{path}")
        return catalog.lookup.status(doc_id, catalog.deployments.live().name)

    copies = {path: status(path).copy_of for path in ("HR/plan.md", "open/plan.md")}
    (canonical,) = (path for path, copy_of in copies.items() if copy_of is None)
    (copy,) = copies.keys() - {canonical}
    assert copies[copy] == f"{place.name}/{canonical}"
    assert status(copy).chunks == first["chunks_new"]
    (place.folder / canonical).unlink()
    after = place.sync().counts
    assert (after["deleted"], after["parsed"], after["embedded"], after["chunks_new"]) == (1, 0, 0, first["chunks_new"])
    left = (place.name,) if copy.startswith("open") else (hr,)
    assert {hit.path for hit in place.search("funicular", left)} == {copy}
    assert place.search("funicular", tuple({place.name, hr} - set(left))) == []
    (place.folder / copy).unlink()
    place.sync()
    assert place.search("funicular", (place.name, hr)) == []
    assert place.reconcile().agrees


def test_a_removed_source_leaves_nothing_to_find_and_can_come_back(place: Deployment) -> None:
    place.write("page.md", "# Page\n\nThe ferry leaves at nine.")
    place.sync()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRIMER_HOME", str(place.workspace.settings.home))
        patch.setenv("PRIMER_BUCKETS", "2")
        assert load_settings().home == place.workspace.settings.home
        assert primer("source", "remove", place.name)[0] == 0
    assert place.search("ferry") == []
    place.add_source()
    assert place.sync().counts["new"] == 1
    assert place.search("ferry")[0].path == "page.md"
    assert place.reconcile().agrees


def test_a_huge_document_holds_up_no_small_one_of_its_sweep(place: Deployment) -> None:
    rows = "\n".join(f"{n},part {n} of the {TOPICS[n % 10]} and its many fittings,{n * 37 % 1000}" for n in range(500))
    place.write("a-huge.csv", f"id,name,weight\n{rows}\n")
    for n in range(3):
        place.write(f"small-{n}.md", section(900 + n))
    share = 12
    counts = place.sync(settings=place.workspace.settings.model_copy(update={"run_passages": share})).counts
    assert (counts["indexed"], counts["failed"]) == (4, 0)
    assert counts["embedded"] == counts["chunks_new"] > 2 * share
    assert counts["cache_hits"] == 0

    catalog = place.workspace.catalog
    at = {}
    for path in ("a-huge.csv", *(f"small-{n}.md" for n in range(3))):
        found = catalog.lookup.status(catalog.lookup.find_document(f"{place.name}/{path}")[0], "v1")
        assert found.indexed_at is not None
        at[path] = found.indexed_at
    assert max(moment for path, moment in at.items() if path != "a-huge.csv") < at["a-huge.csv"]
    assert place.reconcile().agrees
