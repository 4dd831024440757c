"""How far an answer came in an index version: what the store holds of the documents that may give it."""

from collections.abc import Sequence
from dataclasses import dataclass

from primer_core.golden.answers import answers, passage_words
from primer_core.golden.questions import Question
from primer_core.reviews import output_version
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.document_store import DocumentStore, TenantStore
from primer_resources.golden.targets import Target


@dataclass(frozen=True, slots=True)
class Traces:
    """Where an answer was seen; `passage` is the text of one that holds it, `detail` why there may be none."""

    is_indexed: bool
    in_elements: bool
    passage: str | None
    detail: str


class Tracer:
    """Looks into what was parsed and chunked for one index version."""

    def __init__(self, catalog: Catalog, store: DocumentStore, version: IndexVersion) -> None:
        self._catalog = catalog
        self._store = store
        self._version = version

    def trace(self, question: Question, targets: Sequence[Target]) -> Traces:
        """Follow a question's answer through its documents: the one in which it came furthest counts."""
        traces = [self._trace(question, target) for target in targets]
        return max(traces, key=lambda each: (each.passage is not None, each.in_elements, each.is_indexed))

    def _trace(self, question: Question, target: Target) -> Traces:
        document, version = target.document, self._version
        status = self._catalog.lookup.status(document.doc_id, version.name)
        state = self._catalog.generations.states(version.name, [document.canonical_doc_id]).get(document.canonical_doc_id)
        is_indexed = status.indexed_version is not None
        said = [f"{status.pages_to_review} pages wait for a review"] if status.pages_to_review else []
        if document.acl_error is not None:
            said.append(f"nobody may read it: {document.acl_error}")
        if not is_indexed:
            said.append(status.reason or status.stage)
        if state is None or state.content_hash is None:
            return Traces(is_indexed, False, None, "; ".join(said))
        output = output_version(version.recipe.parser.version, state.accepted_pages)
        store = self._store.of(document.tenant_id)
        elements = self._elements(store, state.content_hash, output)
        return Traces(is_indexed, answers(question, elements), self._passage(question, store, state.content_hash, output), "; ".join(said))

    def _elements(self, store: TenantStore, content_hash: str, output: str) -> str:
        """All that was read, in one text, so that an answer that goes on from one element to the next is seen."""
        if not store.has_parsed(content_hash, output):
            return ""
        return "\n".join(element.text for element in store.get_parsed(content_hash, output).elements)

    def _passage(self, question: Question, store: TenantStore, content_hash: str, output: str) -> str | None:
        chunker = self._version.recipe.chunker.version
        if not store.has_chunks(content_hash, output, chunker):
            return None
        chunks = store.get_chunks(content_hash, output, chunker)
        return next((chunk.text for chunk in chunks if answers(question, passage_words(chunk.heading_path, chunk.text))), None)
