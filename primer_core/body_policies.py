"""Policies of bodies: when source bytes that are indexed may go, and which parse outputs nothing uses any more. Both are a deployment's
choice; what they delete keeps its hash and size."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from primer_core.ids import recipe_key
from primer_core.reviews import output_version

LEAST_RETENTION = timedelta(days=1)
"""A shorter retention would race the work that makes the bodies: a run, its retries and a night's backfill fit into a day."""


class KeepSources(StrEnum):
    """How long source bytes are kept: for as long as a document has them, or until every open index version holds all such documents."""

    KEEP = "keep"
    UNTIL_INDEXED = "until_indexed"


def check_retention(retention: timedelta) -> timedelta:
    """The retention. Raises ValueError for one that is too short."""
    if retention < LEAST_RETENTION:
        raise ValueError("it is shorter than a day (P1D), in which bodies may still be in the making; write it as 30d or P30D")
    return retention


@dataclass(frozen=True, slots=True)
class Claim:
    """One document's claim on a content: whether it is a living document that has it now, whether a job of it is not finished, and the
    index versions in which its present version was indexed without a failure since."""

    is_present: bool
    is_under_way: bool
    indexed_in: frozenset[str]


def may_go(claims: Collection[Claim], open_versions: Collection[str], is_under_review: bool) -> bool:
    """Whether a content's source bytes may be deleted: nobody can still be about to read them. A page that waits for a person's decision
    would be parsed again."""
    if not claims or not open_versions or is_under_review:
        return False
    return all(claim.is_present and not claim.is_under_way and claim.indexed_in.issuperset(open_versions) for claim in claims)


def outputs_in_use(parser_versions: Collection[str], accepted_pages: Collection[str]) -> set[str]:
    """The nodes (primer_core/stored_states.py) of the outputs of a content that may be read or quoted: those of parsers in use, with the
    pages that people let through as any of these labels says, and without any."""
    return {recipe_key(output_version(parser, label)) for parser in parser_versions for label in {"", *accepted_pages}}
