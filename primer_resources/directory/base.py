"""The directory port: a person's groups, asked when a search runs. Nothing of it is ever written into an index row.

A person who is not known and a directory that cannot be read are errors of their own. Neither is the same as a person in no group, who
is known and sees nothing.
"""

from collections.abc import Collection
from typing import Protocol

from primer_core.failures import PrimerError


class UnknownPerson(PrimerError):
    """The directory was read and does not know the person."""


class DirectoryUnreadable(PrimerError):
    """The directory cannot be read now, so nobody's groups are known."""


class Directory(Protocol):
    """Knows people and their groups."""

    def groups_of(self, person: str) -> frozenset[str]:
        """The groups of a person, those that contain his groups included. Raises UnknownPerson or DirectoryUnreadable."""
        ...

    def people_in(self, groups: Collection[str]) -> tuple[str, ...]:
        """The people who are in any of the groups, by name. Raises DirectoryUnreadable."""
        ...
