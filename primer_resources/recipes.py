"""Recipes as the settings and the installed libraries make them, and what a sealed one is made again from."""

from dataclasses import dataclass, replace

from primer_core.failures import PrimerError
from primer_core.recipe import MAX_TOKENS, OVERLAP_PERCENT, ChunkerKind, EmbeddingSpec, ParserSpec, Recipe, recipe_difference
from primer_resources.chunker.factory import ChunkerOptions, make_chunker, options_for, options_of
from primer_resources.embedder.model import ModelFiles, describe_model, models_named, resolve_model
from primer_resources.settings import Settings


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a recipe's chunker and embedder are made from, and the recipe that comes of it here."""

    recipe: Recipe
    chunker: ChunkerOptions
    model: ModelFiles


def present_parser(settings: Settings) -> ParserSpec:
    """The parser of this process. Raises PrimerError where a language that OCR is to read is not installed."""
    from primer_resources.parser.ocr.config import ocr_config
    from primer_resources.parser.ocr.installation import check_languages
    from primer_resources.parser.pdf.config import pdf_config
    from primer_resources.parser.version import parser_spec

    check_languages(settings.ocr_languages)
    return parser_spec(ocr_config(settings), pdf_config(settings))


def present_recipe(settings: Settings) -> Recipe:
    """The recipe that the settings and the installed libraries make. Raises PrimerError where the model cannot be loaded, or
    a language that OCR is to read is not installed."""
    parser = present_parser(settings)
    files = resolve_model(settings.embedding_model)
    options = options_for(settings.chunker, files, settings.max_tokens, settings.overlap_percent)
    return Recipe(parser, make_chunker(options).spec, describe_model(files, settings.max_tokens))


def remake(name: str, sealed: Recipe, settings: Settings) -> Ingredients:
    """What the recipe that index version `name` was sealed with is made from here, whatever the settings would choose for a new one.

    The parser is the one of this process; it alone follows the settings. Raises PrimerError where the very recipe cannot be made again:
    other libraries, another parser, or a model that is not here or not the same.
    """
    files = _model_of(sealed.embedding, settings)
    options = options_of(sealed.chunker, settings)
    made = Recipe(present_parser(settings), make_chunker(options).spec, describe_model(files, sealed.embedding.max_tokens))
    if made != sealed:
        raise PrimerError(
            f"index version {name} was made with {recipe_difference(sealed, made)}: set it back or install it again, "
            "or `primer reset` and index anew"
        )
    return Ingredients(made, options, files)


def _model_of(sealed: EmbeddingSpec, settings: Settings) -> ModelFiles:
    found = models_named(sealed.model, settings)
    return next((files for files in found if describe_model(files, sealed.max_tokens) == sealed), found[0])


def vary(
    base: Recipe,
    settings: Settings,
    *,
    model: str | None = None,
    chunker: ChunkerKind | None = None,
    max_tokens: int | None = None,
    overlap_percent: int | None = None,
) -> Recipe:
    """`base` with another model or chunker; what is not named stays as it is, so that its stored outputs serve again.

    A model that counts tokens as the chunker does and takes its passages keeps the chunker; another one gets a chunker with its own
    tokenizer, and its own limit where that is less. Another chunker has its own limit and overlap. Raises PrimerError where the model is
    not here.
    """
    files = _model_of(base.embedding, settings) if model is None else _model_here(model, settings)
    kind = ChunkerKind(base.chunker.kind) if chunker is None else chunker
    same = kind == base.chunker.kind
    if max_tokens is None:
        max_tokens = base.chunker.max_tokens if same else MAX_TOKENS[kind]
    if overlap_percent is None:
        overlap_percent = base.chunker.overlap_percent if same else OVERLAP_PERCENT[kind]
    own = options_for(kind, files, max_tokens, overlap_percent)
    before = options_of(base.chunker, settings)
    kept = replace(own, tokenizer=before.tokenizer, tokenizer_name=before.tokenizer_name)
    spec = make_chunker(kept if _counts_alike(kept, own) else own).spec
    serves = model is None and spec.max_tokens <= base.embedding.max_tokens
    return Recipe(base.parser, spec, base.embedding if serves else describe_model(files, spec.max_tokens))


def _model_here(model: str, settings: Settings) -> ModelFiles:
    named = settings.models / model
    return resolve_model(str(named)) if named.is_dir() else resolve_model(model)


def _counts_alike(one: ChunkerOptions, other: ChunkerOptions) -> bool:
    return one.tokenizer.read_bytes() == other.tokenizer.read_bytes()
