"""The database under the catalog: engine, transactions, time, and bringing the schema up to date."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, OperationalError

from primer_core.failures import PrimerError, SystemFault
from primer_resources.clock import Clock

SQLITE_BUSY_MS = 30_000
"""How long a SQLite connection waits for another's write before "database is locked"."""
MIGRATION_LOCK = 7_462_837_001
"""Any number that no other program on the server locks."""
MIGRATIONS = Path(__file__).parent / "migrations"
_READ_ONLY = "primer_read_only"


def _prepare_sqlite(engine: Engine) -> None:
    """WAL so that readers never wait for the writer; BEGIN IMMEDIATE so that a writing transaction cannot fail half-way for a lock."""

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"busy_timeout={SQLITE_BUSY_MS}", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get(_READ_ONLY) else "BEGIN IMMEDIATE")


class Database:
    """One catalog database. Transactions are short: none is open across a call to a store, an index or a model."""

    def __init__(self, url: str, clock: Clock) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError as error:
            raise PrimerError(f"PRIMER_DATABASE_URL = {url!r} is no database URL; write sqlite:///… or postgresql+psycopg://…") from error
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        self.url = parsed
        self.clock = clock
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.engine = create_engine(parsed, pool_pre_ping=not self.is_sqlite)
        if self.is_sqlite:
            _prepare_sqlite(self.engine)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A writing transaction, committed at the end. Raises SystemFault where the database cannot be reached."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except OperationalError as error:
            raise self._unreachable(error) from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A reading transaction: one snapshot, no write lock."""
        try:
            with self.engine.connect() as connection:
                if self.is_sqlite:
                    connection.execution_options(**{_READ_ONLY: True})
                else:
                    connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                with connection.begin():
                    yield connection
        except OperationalError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: OperationalError) -> SystemFault:
        where, words = self.url.render_as_string(hide_password=True), " ".join(str(error.orig).split())
        return SystemFault(f"catalog {where}: {words}; see that it runs and that PRIMER_DATABASE_URL is right")

    @property
    def _file(self) -> Path | None:
        """The file of a SQLite catalog."""
        return Path(self.url.database) if self.is_sqlite and self.url.database not in (None, "", ":memory:") else None

    def now(self) -> datetime:
        """The time by which generations and leases are judged: the server's on Postgres, so that hosts need not agree on theirs."""
        if self.is_sqlite:
            return self.clock.now()
        with self.read() as connection:
            moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
            return moment

    def moment(self) -> Any:
        """The same time as a value of a statement, without a look-up of its own."""
        return self.clock.now() if self.is_sqlite else func.clock_timestamp()

    def migrate(self) -> None:
        """Bring the schema to the newest revision; a SQLite file and its folder are made where they are missing."""
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
        with self.begin() as connection:
            if not self.is_sqlite:
                # Two pods that start at once would both make the tables.
                connection.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def require_migrated(self) -> None:
        """Raise PrimerError unless the schema is at the newest revision. Looking makes no file."""
        if self._file is not None and not self._file.exists():
            raise PrimerError(f"there is no catalog at {self._file}; run `primer init`, or set PRIMER_HOME to where one is")
        from alembic.config import Config
        from alembic.runtime.migration import MigrationContext
        from alembic.script import ScriptDirectory

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        head = ScriptDirectory.from_config(config).get_current_head()
        with self.read() as connection:
            current = MigrationContext.configure(connection).get_current_revision()
        if current != head:
            where = self.url.render_as_string(hide_password=True)
            raise PrimerError(f"catalog {where} is at schema {current or 'none'}, this Primer needs {head}; run `primer init`")

    def drop_all(self) -> None:
        """Remove all of the catalog's tables, where there are any."""
        if self._file is not None and not self._file.exists():
            return
        from primer_resources.catalog.schema_versions import metadata

        with self.begin() as connection:
            metadata.drop_all(connection)
            connection.exec_driver_sql("DROP TABLE IF EXISTS alembic_version")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
