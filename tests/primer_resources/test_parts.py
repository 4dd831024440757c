from hypothesis import given
from hypothesis import strategies as st

from primer_core.chunks import Chunk
from primer_core.elements import Element, ElementKind, ParsedDocument
from primer_resources.document_store.parts import PARSED, chunks_body, parsed_bodies, to_chunks, to_parsed

elements = st.builds(
    Element,
    st.integers(0, 1 << 30),
    st.sampled_from(ElementKind),
    st.text(max_size=20),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 99),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
documents = st.builds(
    ParsedDocument,
    st.lists(elements, max_size=5).map(tuple),
    st.none() | st.integers(0, 900),
    st.binary(max_size=20),
    st.dictionaries(st.text(max_size=5), json_values, max_size=3),
)
numbers = st.integers(0, 1 << 30)
texts = st.text(max_size=20)
passages = st.builds(
    Chunk, numbers, st.lists(texts, max_size=3).map(tuple), texts, texts, texts, st.lists(numbers, max_size=3).map(tuple), numbers, numbers
)


@given(documents)
def test_a_parsed_document_is_in_its_bodies_whole(parsed: ParsedDocument) -> None:
    bodies = parsed_bodies(parsed)
    assert to_parsed(bodies) == parsed
    assert bodies == parsed_bodies(parsed), "equal documents have equal bodies, so that they are saved once"
    assert [not bodies[key] for key in PARSED] == [
        not parsed.metadata,
        not parsed.docling_json_zst,
        not parsed.elements and parsed.pages is None,
    ]


@given(st.lists(passages, max_size=4).map(tuple))
def test_a_chunk_set_is_in_its_body_whole(made: tuple[Chunk, ...]) -> None:
    body = chunks_body(made)
    assert to_chunks(body) == made
    assert (body == b"") == (made == ())
