"""The objects that a state may have: the keys of its parts, which stages and the store name alike."""

from primer_core.ids import recipe_key
from primer_core.stored_states import Part, PartKey

CORE: PartKey = (Part.CORE, "")
DOCUMENT: PartKey = (Part.PARSED, "document")
ELEMENTS: PartKey = (Part.PARSED, "elements")
SOURCE: PartKey = (Part.BLOBS, "")


def chunk_set(chunker_version: str) -> PartKey:
    """The key of the chunk set of a chunker."""
    return Part.CHUNKS, recipe_key(chunker_version)


def picture(page: int, region: int) -> PartKey:
    """The key of the picture of a page to review, or of a region of it."""
    return Part.BLOBS, f"page-{page}-{region}"
