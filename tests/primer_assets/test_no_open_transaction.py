"""No catalog transaction is open while a drive is asked for anything; and what lies on drives does not say which document it is of."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, select

from primer_core.stored_states import DriveKind
from primer_resources.catalog.schema import documents
from primer_resources.catalog.schema_bodies import contents
from primer_resources.document_store.drive import Drive
from primer_resources.document_store.folder_drive import FolderDrive
from tests.copies_bench import CopiesBench
from tests.deployment import Deployment, workspace

METHODS = ("create", "replace", "head", "get", "get_range", "fetch", "copy", "delete", "list")
PARSED_AND_READ = {"create", "head", "get", "fetch"}


@dataclass
class Watch:
    """Which threads are inside a transaction, the calls on drives, and those of them that a thread made inside one."""

    open: Counter[int] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def call(self, name: str) -> None:
        """A drive is asked for something."""
        self.calls[name] += 1
        thread = threading.current_thread()
        # Objects of one read are fetched by threads of their own, for one that waits.
        if self.open[thread.ident or 0] or (thread.name.startswith("read") and self.open[threading.main_thread().ident or 0]):
            self.wrong.append(name)

    @contextmanager
    def over(self, engine: Engine) -> Iterator[None]:
        """Watch the transactions of a catalog's engine."""

        def begun(_connection: Any) -> None:
            self.open[threading.get_ident()] += 1

        def ended(_connection: Any) -> None:
            self.open[threading.get_ident()] -= 1

        listeners = (("begin", begun), ("commit", ended), ("rollback", ended))
        for name, listener in listeners:
            event.listen(engine, name, listener)
        yield
        for name, listener in listeners:
            event.remove(engine, name, listener)
        assert not any(self.open.values()), "every transaction that began has ended"


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Sees what is asked of drives in folders."""
    made = Watch()
    for name in METHODS:
        plain = getattr(FolderDrive, name)

        def watched(drive: Drive, *given: Any, _plain: Callable[..., Any] = plain, _name: str = name) -> Any:
            made.call(_name)
            return _plain(drive, *given)

        monkeypatch.setattr(FolderDrive, name, watched)
    return made


def test_the_watch_sees_a_call_inside_a_transaction(watch: Watch, tmp_path: Path) -> None:
    bench = CopiesBench(f"sqlite:///{tmp_path / 'catalog.sqlite'}", tmp_path / "home")
    bench.make()
    drive = bench.store.of("acme").intake
    watch.calls.clear()
    with watch.over(bench.catalog.database.engine):
        with bench.catalog.database.begin():
            drive.head("a/b")
        with bench.catalog.database.read():
            drive.head("a/b")
        drive.head("a/b")
    assert (watch.calls["head"], watch.wrong) == (3, ["head", "head"])
    bench.catalog.close()


def test_from_a_sync_to_a_search_no_transaction_is_open_across_a_call_to_a_drive(watch: Watch, tmp_path: Path) -> None:
    with workspace(tmp_path / "home", buckets=2) as made:
        place = Deployment(made, tmp_path / "docs", "docs")
        place.write("one.md", "# Harbour\n\nThe harbour of district 7 is looked after by crew 12.")
        place.write("two.md", "---\ntitle: Orchard\n---\n# Orchard\n\nApples grow in the orchard.")
        place.write("copy.md", "# Harbour\n\nThe harbour of district 7 is looked after by crew 12.")
        with watch.over(made.catalog.database.engine):
            assert place.sync().counts["indexed"] == 3
            place.write("two.md", "# Orchard\n\nPears grow in the orchard.")
            (place.folder / "one.md").unlink()
            assert place.sync().counts["indexed"] >= 1
            assert place.search("who looks after the harbour")
        assert watch.wrong == []
        assert watch.calls.keys() >= PARSED_AND_READ
        assert_no_key_tells_whose_it_is(made.catalog, made.store, made.settings.tenant)


def test_a_purge_has_no_transaction_open_across_a_call_to_a_drive(watch: Watch, database_url: str, tmp_path: Path) -> None:
    bench = CopiesBench(database_url, tmp_path / "home")
    bench.make()
    with watch.over(bench.catalog.database.engine):
        for path, text in (("a/1.md", "alpha|beta"), ("a/2.md", "alpha|beta"), ("b/1.md", "delta")):
            bench.put("north", path, text)
        bench.sync("north")
        bench.drain()
        bench.sources["north"].remove("b/1.md")
        bench.put("north", "a/2.md", "gamma")
        bench.sync("north")
        bench.drain()
        assert bench.purge()["proofs"] == 1
    assert watch.wrong == []
    assert watch.calls["delete"] > 0
    assert_no_key_tells_whose_it_is(bench.catalog, bench.store, "acme")
    bench.catalog.close()


def assert_no_key_tells_whose_it_is(catalog: Any, store: Any, tenant: str) -> None:
    """Neither a document's id nor a content's hash is in the key of any object."""
    with catalog.database.read() as connection:
        ids = {*connection.execute(select(documents.c.doc_id)).scalars(), *connection.execute(select(contents.c.content_hash)).scalars()}
    mine = store.of(tenant)
    keys = [stored.key for drive in (mine.intake, mine.pipeline.drive) for stored in drive.list()]
    assert len(keys) >= len(DriveKind)
    assert ids
    assert not [key for key in keys if any(each in key for each in ids)]
