"""The mirror of a git branch: a bare repository under PRIMER_HOME, brought up to date at each sync, and what is read from it."""

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import urllib3
from dulwich.client import HTTPUnauthorized, default_urllib3_manager, get_transport_and_path
from dulwich.errors import GitProtocolError, NotGitRepository
from dulwich.objects import Commit, ObjectID
from dulwich.refs import Ref
from dulwich.repo import Repo

from primer_core.failures import PrimerError, SystemFault, Transient
from primer_resources.credentials import read_secret

MOST_PACKS = 50
"""Each fetch adds a pack, and a look-up asks all of them; above this they become one."""
TIMEOUT_S = 60.0
"""Seconds without a byte from the host."""
TRIES = 3
_KEPT = Ref(b"refs/heads/primer")
_HEAD = Ref(b"HEAD")


def split_secret(secret: str | None) -> tuple[str | None, str | None]:
    """(user, password) of "user:password"; a bare token is the password of a user that git hosts do not look at."""
    if secret is None:
        return None, None
    user, colon, password = secret.partition(":")
    return (user, password) if colon else ("token", secret)


class GitMirror:
    """One branch of one repository. `branch` "" is the one that the repository shows first."""

    def __init__(self, folder: Path, url: str, branch: str, credentials_ref: str | None) -> None:
        self._folder, self._url, self._branch, self._credentials_ref = folder, url, branch, credentials_ref
        self._repo: Repo | None = None

    @property
    def repo(self) -> Repo:
        """The bare repository, made when it is not there."""
        if self._repo is None:
            try:
                if (self._folder / "objects").is_dir():
                    self._repo = Repo(str(self._folder))
                else:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    self._repo = Repo.init_bare(str(self._folder))
            except (OSError, NotGitRepository) as error:
                raise SystemFault(f"the mirror {self._folder} of {self._url} cannot be opened ({error}); remove that folder") from error
        return self._repo

    def update(self) -> ObjectID | None:
        """Fetch what is new and return the branch's head; None for a repository without any commit.

        Raises SystemFault where it is no repository or has no such branch, PrimerError where the credentials are refused, Transient
        where it does not answer now.
        """
        repo = self.repo
        user, password = split_secret(read_secret(self._credentials_ref))
        wanted = Ref(b"refs/heads/" + self._branch.encode()) if self._branch else _HEAD

        offered: dict[Ref, ObjectID] = {}

        def wants(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:
            offered.update(refs)
            return [refs[wanted]] if wanted in refs and refs[wanted] not in repo.object_store else []

        try:
            client, path = get_transport_and_path(self._url, username=user, password=password, quiet=True, pool_manager=self._pool())
            # The refs of the answer are not looked at: for a folder they are read after the fetch, and may name commits that came later.
            client.fetch(path, repo, determine_wants=wants)
        except HTTPUnauthorized as error:
            which = self._credentials_ref or "none were given"
            raise PrimerError(f"repository {self._url} refused the credentials ({which}); renew them, or set --credentials") from error
        except NotGitRepository as error:
            raise SystemFault(f"{self._url} is no git repository; correct `url` in the source's settings") from error
        except (GitProtocolError, urllib3.exceptions.HTTPError, OSError) as error:
            raise Transient(f"repository {self._url} does not answer ({type(error).__name__}: {error}); it is tried again") from error
        head = offered.get(wanted)
        if head is None:
            if offered and self._branch:
                raise SystemFault(f"repository {self._url} has no branch {self._branch!r}; correct `branch` in the source's settings")
            return None
        repo.refs[_KEPT] = head
        if len(list(repo.object_store.packs)) > MOST_PACKS:
            repo.object_store.repack()
        return head

    def _pool(self) -> Any:
        """Connections that give up after TIMEOUT_S, and do not sleep through a time to wait that the host names, however long: the source's
        next turn is the wait."""
        pool = default_urllib3_manager(None, base_url=self._url, timeout=TIMEOUT_S)
        pool.connection_pool_kw["retries"] = urllib3.Retry(total=TRIES, respect_retry_after_header=False)
        return pool

    def commit(self, commit_id: ObjectID) -> Commit:
        """A commit. Raises KeyError where the mirror does not have it."""
        found = self.repo.object_store[commit_id]
        if not isinstance(found, Commit):
            raise KeyError(commit_id)
        return found

    def main_line(self, head: ObjectID) -> Iterator[ObjectID]:
        """The commits from the head back to the first, by first parents: what readers of the published pages saw, one after the other."""
        at: ObjectID | None = head
        while at is not None:
            yield at
            parents = self._parents(at)
            at = parents[0] if parents else None

    def is_ancestor(self, old: ObjectID, head: ObjectID) -> bool:
        """Whether `old` is the head or behind it by any parents. Dates are not asked: they may lie."""
        seen, waiting = {head}, deque([head])
        while waiting:
            at = waiting.popleft()
            if at == old:
                return True
            new = [parent for parent in self._parents(at) if parent not in seen]
            seen.update(new)
            waiting.extend(new)
        return False

    def _parents(self, commit_id: ObjectID) -> list[ObjectID]:
        """The parents of a commit that the mirror must have. Raises SystemFault where it does not."""
        try:
            return self.commit(commit_id).parents
        except KeyError as error:
            raise SystemFault(
                f"the mirror {self._folder} of {self._url} lacks commit {commit_id.decode()}; remove that folder, and it is fetched anew"
            ) from error

    def read(self, blob_id: str) -> bytes:
        """The bytes of a blob. Raises KeyError where the mirror does not have it."""
        return self.repo.object_store.get_raw(ObjectID(blob_id.encode()))[1]

    def close(self) -> None:
        """Close the repository's files."""
        if self._repo is not None:
            self._repo.close()
            self._repo = None
