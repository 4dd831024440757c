"""Queries of the keyword index: the terms of a text, the scope, and term weights that are the same in every shard."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tantivy import Occur, Query, Schema, Searcher, TextAnalyzer

from primer_core.failures import PrimerError
from primer_resources.index_base import Scope
from primer_resources.keyword_index.shard import make_analyzer, well_formed

FIELD_BOOSTS = {"text": 1.0, "heading": 0.25}
"""BM25 rewards short fields, and a heading stands over every passage of its section: above about a half, passages that only stand under
the word come before those that hold it."""
MAX_QUERY_TERMS = 128
"""Distinct terms; a pasted page beyond them changes the ranking little and costs a postings list each, in every shard."""
FUNCTION_WORDS = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they
them their theirs themselves what which who whom this that these those am is are was were be been being have has had having do
does did doing would should could ought a an the and but if or because as until while of at by for with about against between into
through during before after above below to from up down in out on off over under again further then once here there when where why
how all any both each few more most other some such no nor not only own same so than too very can may might must shall will
"""
"""Snowball's list of English words that carry no matter, and the other auxiliaries. Documents hold few of a question's own words ("what",
"does", "who"), so their rarity would count for much. Only queries leave them out: the index has every word."""


def make_query_analyzers() -> tuple[TextAnalyzer, ...]:
    """The analyses of a query, the better one first: as the rows are, without function words; and as the rows are."""
    return make_analyzer(FUNCTION_WORDS.split()), make_analyzer()


def query_terms(analyzers: Sequence[TextAnalyzer], text: str) -> tuple[str, ...]:
    """The distinct terms of any string, in order, by the first analysis that leaves any. No character has a meaning of its own, so no
    string is a syntax error."""
    every = (tuple(dict.fromkeys(analyzer.analyze(well_formed(text)))) for analyzer in analyzers)
    return next((terms for terms in every if terms), ())[:MAX_QUERY_TERMS]


def idf(documents: int, with_term: int) -> float:
    """BM25's inverse document frequency as Tantivy computes it. `with_term` may count deleted rows, so it can exceed `documents`."""
    without = max(documents - with_term, 0)
    return math.log(1.0 + (without + 0.5) / (with_term + 0.5))


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How many rows a shard holds, and how many of them hold each (field, term)."""

    documents: int
    with_term: dict[tuple[str, str], int]


def count_terms(searcher: Searcher, terms: Sequence[str]) -> TermCounts:
    """Count the terms in one shard."""
    return TermCounts(searcher.num_docs, {(field, term): searcher.doc_freq(field, term) for field in FIELD_BOOSTS for term in terms})


def add_counts(shards: Sequence[TermCounts]) -> TermCounts:
    """The counts of all shards together."""
    total: dict[tuple[str, str], int] = {}
    for shard in shards:
        for key, count in shard.with_term.items():
            total[key] = total.get(key, 0) + count
    return TermCounts(sum(shard.documents for shard in shards), total)


def query_weight(terms: Sequence[str], everywhere: TermCounts) -> float:
    """The BM25 score of a passage of average length that holds each term once: what scores are a share of, so that they compare between
    queries."""
    return sum(idf(everywhere.documents, everywhere.with_term["text", term]) for term in terms)


def shard_query(schema: Schema, scope: Sequence[Query], here: TermCounts, everywhere: TermCounts) -> Query | None:
    """Any of the terms, within the scope; None where the shard has none of them.

    Each term is boosted by what its rarity over all shards is to its rarity here, so that scores of different shards compare.
    Field lengths stay those of the shard.
    """
    wanted = []
    for (field, term), count in here.with_term.items():
        if count:
            everywhere_idf = idf(everywhere.documents, everywhere.with_term[field, term])
            weight = FIELD_BOOSTS[field] * everywhere_idf / idf(here.documents, count)
            wanted.append((Occur.Should, Query.boost_query(Query.term_query(schema, field, term, "freq"), weight)))
    if not wanted:
        return None
    return Query.boolean_query([(Occur.Must, Query.boolean_query(wanted)), *((Occur.Must, part) for part in scope)])


def scope_queries(schema: Schema, scope: Scope) -> list[Query]:
    """The scope as filters that add nothing to the score. The caller has dealt with scopes that see nothing. Raises PrimerError."""
    try:
        filters = [
            Query.term_query(schema, "tenant_id", scope.tenant_id, "basic"),
            Query.term_set_query(schema, "acl_ids", sorted(scope.acl_ids)),
        ]
        if scope.libraries is not None:
            filters.append(Query.term_set_query(schema, "library", sorted(scope.libraries)))
    except (ValueError, UnicodeEncodeError) as error:
        raise PrimerError(f"the scope of tenant {scope.tenant_id!r} has an id that is not valid text: {error}") from error
    return [Query.const_score_query(each, 0.0) for each in filters]
