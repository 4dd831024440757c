"""What an index version's recipe and name stand for in running code: its parser, chunker, embedder, cache and two indexes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from primer_core.recipe import EmbeddingSpec, Recipe
from primer_resources.catalog.deployments import IndexVersion
from primer_resources.chunker.base import ChunkService
from primer_resources.containers.expander import Expander
from primer_resources.embedder.base import Embedder, EmbeddingCache
from primer_resources.index_base import KeywordIndex, VectorIndex
from primer_resources.parser.base import Parser
from primer_resources.settings import Settings
from primer_resources.workers import WorkerPool

if TYPE_CHECKING:
    from primer_resources.embedder.model import ModelFiles


@dataclass(frozen=True, slots=True)
class Tools:
    """One index version's tools."""

    parser: Parser
    slow_parser: Parser
    chunker: ChunkService
    embedder: Embedder
    cache: EmbeddingCache
    vectors: VectorIndex
    keywords: KeywordIndex


class Toolkit:
    """Makes the tools of index versions, each once a process. Libraries are loaded when a tool is first used, not before."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tools: dict[str, Tools] = {}
        self._embeddings: dict[EmbeddingSpec, tuple[Embedder, EmbeddingCache]] = {}

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe that the settings and the installed libraries make. Raises PrimerError where the model cannot be loaded, or
        a language that OCR is to read is not installed."""
        from primer_resources.recipes import present_recipe

        return present_recipe(self._settings)

    def vary(self, base: Recipe, **changes: Any) -> Recipe:
        """A recipe with another model or chunker than `base`: see primer_resources.recipes.vary."""
        from primer_resources.recipes import vary

        return vary(base, self._settings, **changes)

    @cached_property
    def pool(self) -> WorkerPool[Any]:
        """The workers that documents are read in, shared by all index versions."""
        from primer_resources.parser.docling_parser import open_worker_pool

        return open_worker_pool(self._settings)

    @cached_property
    def slow_pool(self) -> WorkerPool[Any]:
        """The workers of the slow lane."""
        from primer_resources.parser.docling_parser import open_slow_pool

        return open_slow_pool(self._settings)

    @cached_property
    def expander(self) -> Expander:
        """Takes mails and archives apart, in the shared workers."""
        return Expander(lambda: self.pool, self._settings.max_file_mb)

    def of(self, version: IndexVersion) -> Tools:
        """The tools of an index version, made from its sealed recipe. Raises PrimerError where that very recipe cannot be made here."""
        tools = self._tools.get(version.name)
        if tools is None:
            tools = self._tools[version.name] = self._make(version)
        return tools

    def _make(self, version: IndexVersion) -> Tools:
        from primer_resources.chunker.in_workers import WorkerChunker
        from primer_resources.keyword_index.tantivy_index import TantivyKeywordIndex
        from primer_resources.parser.docling_parser import DoclingParser, check_engine
        from primer_resources.parser.ocr.config import ocr_config
        from primer_resources.parser.pdf.config import pdf_config
        from primer_resources.recipes import remake
        from primer_resources.vector_index.lance_index import LanceVectorIndex

        home, recipe = self._settings.home.resolve(), version.recipe
        made = remake(version.name, recipe, self._settings)
        ocr, pdf, most = ocr_config(self._settings), pdf_config(self._settings), self._settings.max_file_mb
        check_engine(self.pool, pdf)
        embedder, cache = self._embedding(recipe.embedding, made.model)
        return Tools(
            parser=DoclingParser(self.pool, most, ocr, self._settings.fast_lane, pdf),
            slow_parser=DoclingParser(self.slow_pool, most, ocr, self._settings.slow_time, pdf),
            chunker=WorkerChunker(self.pool, made.chunker),
            embedder=embedder,
            cache=cache,
            vectors=LanceVectorIndex(str(home / "vectors"), version.name, recipe.embedding),
            keywords=TantivyKeywordIndex(home / "keywords" / version.name, recipe.chunker.version),
        )

    def drop(self, version: IndexVersion, in_use: Iterable[IndexVersion]) -> None:
        """Remove the two indexes of a version, and the embedding cache of its model where no version `in_use` has that model. Needs no
        model and no parser, so that what can no longer be made can still be dropped."""
        from primer_resources.embedder.cache import LanceEmbeddingCache
        from primer_resources.keyword_index.tantivy_index import TantivyKeywordIndex
        from primer_resources.vector_index.lance_index import LanceVectorIndex

        tools, home, recipe = self._tools.pop(version.name, None), self._settings.home.resolve(), version.recipe
        if tools is not None:
            tools.keywords.close()
        LanceVectorIndex(str(home / "vectors"), version.name, recipe.embedding).drop()
        TantivyKeywordIndex(home / "keywords" / version.name, recipe.chunker.version).drop()
        if recipe.embedding.version not in {each.recipe.embedding.version for each in in_use}:
            self._embeddings.pop(recipe.embedding, None)
            LanceEmbeddingCache(str(home / "embeddings"), recipe.embedding.version).drop()

    def _embedding(self, spec: EmbeddingSpec, files: "ModelFiles") -> tuple[Embedder, EmbeddingCache]:
        """A model's embedder and cache, shared by all versions that have it: loaded, a model takes hundreds of megabytes."""
        from primer_resources.embedder.cache import LanceEmbeddingCache
        from primer_resources.embedder.sentence_transformer import open_embedder

        if spec not in self._embeddings:
            cache = LanceEmbeddingCache(str(self._settings.home.resolve() / "embeddings"), spec.version)
            self._embeddings[spec] = open_embedder(self._settings, files, spec.max_tokens), cache
        return self._embeddings[spec]

    def kill_workers(self) -> None:
        """Kill the child processes and nothing more, for a process that is about to end while another thread still uses them."""
        for pool in ("pool", "slow_pool"):
            if pool in self.__dict__:
                getattr(self, pool).kill()

    def close(self) -> None:
        """End what the tools hold: child processes and index writers."""
        for pool in ("pool", "slow_pool"):
            if pool in self.__dict__:
                getattr(self, pool).close()
        for tools in self._tools.values():
            tools.keywords.close()
        self._tools.clear()
