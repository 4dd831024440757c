"""`primer status`, `show` and `search`: what is known of a document, what is in it, and what answers a question."""

from typing import Annotated, Any

import typer

from primer.cli.output import JsonOption, out, print_json, print_table, visible
from primer.cli.pulse import show_freshness, show_sources
from primer.workspace import Workspace, open_workspace
from primer_core.failures import PrimerError
from primer_core.name_lists import split_names
from primer_core.reviews import ReviewState, output_version, page_label
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.catalog.documents import KnownDocument
from primer_resources.catalog.pulse import sources_to_json

DOC = Annotated[str, typer.Argument(help="A doc_id, a uri, or SOURCE/relative/path.")]


def resolve(workspace: Workspace, doc: str) -> str:
    """The doc_id that `doc` means. Raises PrimerError where there is none."""
    found = workspace.catalog.lookup.find_document(doc)
    if not found:
        raise PrimerError(f"document {doc!r} is unknown; give a doc_id, a uri, or SOURCE/relative/path as `primer search` prints them")
    return found[0]


def status(
    doc: Annotated[str | None, typer.Argument(help="A doc_id, a uri, or SOURCE/relative/path; all sources when left out.")] = None,
    freshness: Annotated[bool, typer.Option("--freshness", help="How long changes take, and what waits.")] = False,
    window: Annotated[str | None, typer.Option(help="With --freshness: over the last 30m, 2h, 3d.")] = None,
    json: JsonOption = False,
) -> None:
    """Show where a document stands, or how many documents of each source stand where and which sources are not in step."""
    if (doc is not None and freshness) or (window is not None and not freshness):
        raise PrimerError("give a document, or --freshness with its --window, or neither")
    with open_workspace() as workspace:
        if freshness:
            show_freshness(workspace, window, json)
            return
        if doc is None:
            _overview(workspace, json)
            return
        version = workspace.catalog.deployments.live().name
        found = workspace.catalog.lookup.status(resolve(workspace, doc), version)
    if json:
        print_json(found)
        return
    for name in (
        "doc_id",
        "uri",
        "source",
        "path",
        "stage",
        "source_version",
        "outcome",
        "indexed_version",
        "chunks",
        "indexed_at",
        "container",
        "copy_of",
        "pages_to_review",
        "text_kept",
        "text_losses",
        "reason",
        "error",
    ):
        value = getattr(found, name)
        if value is not None:
            out.print(f"{name:16} {visible(str(value))}", markup=False)


def _overview(workspace: Workspace, json: bool) -> None:
    counts = workspace.catalog.lookup.counts_by_status()
    waiting = workspace.catalog.queue.unfinished()
    sources = [source.source_id for source in workspace.catalog.sources.all()]
    health = workspace.catalog.pulses.sources(workspace.settings.pulse_limits.stalled)
    if json:
        version = workspace.catalog.deployments.live().name
        print_json({"index_version": version, "unfinished_jobs": waiting, "documents": counts, "sources": sources_to_json(health)})
        return
    names = sorted({status for by_status in counts.values() for status in by_status} | {"indexed", "dead_letter", "pending"})
    print_table(["source", *names], [[source, *(counts.get(source, {}).get(name, 0) for name in names)] for source in sources])
    out.print(f"{waiting} jobs are not finished")
    show_sources(health)


def show(
    doc: DOC,
    elements: Annotated[bool, typer.Option("--elements", help="The elements that parsing gave.")] = False,
    chunks: Annotated[bool, typer.Option("--chunks", help="The passages that the indexes hold.")] = False,
    text: Annotated[bool, typer.Option("--text", help="The text, as it was read.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what is in a document: its passages, or its elements or text."""
    if elements + chunks + text > 1:
        raise PrimerError("choose one of --elements, --chunks and --text")
    with open_workspace() as workspace:
        doc_id = resolve(workspace, doc)
        known = workspace.catalog.documents.by_id([doc_id])[doc_id]
        version = workspace.catalog.deployments.live()
        recipe = version.recipe
        if known.content_hash is None:
            raise PrimerError(f"document {doc} was never read ({known.reason}); `primer status {doc}` says why")
        canonical, store = known.canonical_doc_id, workspace.store.of(known.tenant_id)
        made_by = _newest_output(workspace, version, canonical, known)
        if elements or text:
            if not store.has_parsed(known.content_hash, made_by):
                raise PrimerError(f"document {doc} is not parsed ({known.reason or known.status}); `primer status {doc}` says why")
            parsed = store.get_parsed(known.content_hash, made_by)
            if text:
                words = "\n\n".join(element.text for element in parsed.elements)
                _emit(json, {"doc_id": doc_id, "text": words, "metadata": parsed.metadata}, words)
                return
            _emit(
                json,
                list(parsed.elements),
                "\n".join(
                    f"{e.order:4} {e.kind}{e.level or ''}{'' if e.page is None else f' p{e.page}'}: {e.text}" for e in parsed.elements
                ),
            )
            return
        if not store.has_chunks(known.content_hash, made_by, recipe.chunker.version):
            raise PrimerError(f"document {doc} has no passages ({known.reason or known.status}); `primer status {doc}` says why")
        made = store.get_chunks(known.content_hash, made_by, recipe.chunker.version)
        live = workspace.catalog.lookup.chunk_ids(canonical, version.name)
        passages: list[dict[str, Any]] = [
            {
                "chunk_id": chunk.id_in(canonical),
                "ordinal": chunk.ordinal,
                "heading_path": list(chunk.heading_path),
                "pages": list(chunk.pages),
                "token_count": chunk.token_count,
                "indexed": chunk.id_in(canonical) in live,
                "text": chunk.text,
                "embed_text": chunk.embed_text,
                "overlap": chunk.overlap,
            }
            for chunk in made
        ]
        _emit(json, passages, "\n\n".join(_passage(p["heading_path"], p["pages"], p["text"], f"{p['ordinal']}") for p in passages))


def _newest_output(workspace: Workspace, version: IndexVersion, doc_id: str, known: KnownDocument) -> str:
    """The version of the newest output of a document's content: with the pages let through now, or, until that is made, what the indexes
    hold."""
    accepted = workspace.catalog.reviews.listed([ReviewState.ACCEPTED], doc_id=doc_id)
    newest = output_version(version.recipe.parser.version, page_label(review.page for review in accepted))
    state = workspace.catalog.generations.states(version.name, [doc_id]).get(doc_id)
    content_hash = known.content_hash or ""
    if state is None or state.content_hash != content_hash or workspace.store.of(known.tenant_id).has_parsed(content_hash, newest):
        return newest
    return output_version(version.recipe.parser.version, state.accepted_pages)


def _emit(json: bool, value: Any, words: str) -> None:
    if json:
        print_json(value)
    else:
        out.print(words, markup=False, soft_wrap=True)


def _passage(heading_path: list[str] | tuple[str, ...], pages: list[int], text: str, label: str) -> str:
    place = " > ".join(heading_path)
    page = f" (page {pages[0]})" if pages else ""
    return f"[{label}] {place}{page}\n{text}"


def search(
    query: str,
    groups: Annotated[str | None, typer.Option(help="Groups of the person who asks, comma-separated. None sees nothing.")] = None,
    person: Annotated[str | None, typer.Option("--as", help="The person who asks; the directory knows the groups.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many passages.")] = 10,
    json: JsonOption = False,
) -> None:
    """Search both indexes as a person, or as anybody of these groups."""
    if not query.strip():
        raise PrimerError("the query is empty; say what to look for")
    if groups is not None and person is not None:
        raise PrimerError("choose one of --groups and --as: the directory says which groups a person has")
    with open_workspace() as workspace:
        given = split_names(groups or "")
        names = given if person is None else sorted(workspace.directory.groups_of(person))
        results = workspace.reader.search(query, workspace.settings.tenant, names, k)
    if json:
        print_json(results)
        return
    if not results:
        reason = "no --groups and no --as given, and nobody may read nothing" if person is None else f"{person} is in no group"
        out.print("nothing found" if names else f"nothing found: {reason}", markup=False)
    for rank, hit in enumerate(results, start=1):
        out.print(f"{rank}. {hit.source}/{visible(hit.path)}  ({hit.score:.4f})", markup=False)
        excerpt = " ".join(hit.text.split())
        page = [] if hit.page is None else [hit.page]
        out.print("   " + _passage(hit.heading_path, page, excerpt[:300], "passage").replace("\n", "\n   "), markup=False, soft_wrap=True)
