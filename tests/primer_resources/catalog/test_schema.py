import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import event, insert, inspect, select, text
from sqlalchemy.exc import IntegrityError

from primer_core.failures import PrimerError, SystemFault
from primer_core.lanes import Lane
from primer_core.source_health import PulseLimits, StallLimits
from primer_core.stages import PARSE, WRITE
from primer_core.ulids import LEAST_ULID
from primer_resources.catalog.catalog import Catalog
from primer_resources.catalog.database import MIGRATIONS, Database
from primer_resources.catalog.schema import LIVE_STATES, acls, canonicals, documents, index_state, jobs, ledger
from primer_resources.catalog.schema_versions import metadata
from primer_resources.clock import SystemClock
from tests.primer_resources.catalog.world import BUCKETS, LEASE, START, VERSION, World

ACL = {"acl_id": "a", "tenant_id": "t", "source_id": "s", "scope": "", "allow_groups": [], "readable": True, "updated_at": START}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url, SystemClock())
    yield made
    made.close()


def _default_differs(_context: Any, _found: Any, _wanted: Any, found_default: str | None, *_rest: Any) -> bool | None:
    """Alembic strips the quotes from SQLite's defaults, but not from an empty one; None leaves the answer to it."""
    return False if found_default == "('')" else None


def test_the_migrations_make_exactly_the_schema_of_the_tables(database: Database) -> None:
    database.migrate()
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": _default_differs})
        assert compare_metadata(context, metadata) == []


def _conditions(database: Database) -> dict[str, set[str]]:
    """Index → the words of its condition, as the database has them: autogenerate does not compare conditions."""
    found = {}
    for table in metadata.tables:
        for index in inspect(database.engine).get_indexes(table):
            condition = index.get("dialect_options", {}).get(f"{database.engine.dialect.name}_where")
            if condition is not None:
                found[str(index["name"])] = set(re.findall(r"[a-z_]{4,}|[A-Z]{3,}", str(condition))) - {
                    "text",
                    "character",
                    "varying",
                    "ARRAY",
                }
    return found


def test_partial_indexes_hold_what_the_queries_ask_for(database: Database) -> None:
    database.migrate()
    found = _conditions(database)
    assert {"state", *LIVE_STATES} <= found["ix_jobs_live"]
    assert {"indexed", "superseded"} <= found["ix_jobs_finished"]
    assert "indexed" not in found["ix_jobs_live"]
    assert "dead" in found["ix_jobs_dead"]
    assert {"lane", "access", *LIVE_STATES} <= found["ix_jobs_access"]
    assert {"indexed", "changed_at", "NOT"} <= found["ix_jobs_fresh"]
    assert "done_at" in found["ix_purges_due_waiting"]
    assert "NOT" not in found["ix_purges_due_waiting"]
    assert {"done_at", "NOT"} <= found["ix_purges_due_done"]
    assert "deleted_at" in found["ix_documents_living"]
    assert {"missing_scan", "NOT"} <= found["ix_documents_missing"]
    assert {"reason", "changing"} <= found["ix_documents_changing"]
    assert "open" in found["ix_reviews_open"]


def test_what_waits_is_found_by_its_index_whatever_the_corpus(world: World) -> None:
    catalog = world.catalog
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        seen.append((statement, parameters))

    event.listen(catalog.database.engine, "before_cursor_execute", note)
    catalog.jobs.claim(WRITE, VERSION, BUCKETS, "run-a", LEASE, 5)
    catalog.jobs.claim(PARSE, VERSION, BUCKETS, "run-a", LEASE, 5, Lane.SLOW)
    catalog.queue.waiting(LEASE)
    catalog.queue.waiting_slow()
    catalog.jobs.claim(WRITE, VERSION, BUCKETS, "run-a", LEASE, 5, Lane.ACCESS)
    catalog.queue.waiting_access()
    catalog.pulses.take(VERSION, LEASE, PulseLimits({}, StallLimits(LEASE, LEASE)))
    catalog.queue.unfinished()
    catalog.jobs.renew("run-a", LEASE)
    catalog.jobs.release("run-a")
    catalog.jobs.prune(START, 5)
    catalog.lookup.dead_letters()
    catalog.generations.due(VERSION, BUCKETS, LEASE, 5)
    event.remove(catalog.database.engine, "before_cursor_execute", note)
    asked = [(statement, parameters) for statement, parameters in seen if re.search(r"\b(jobs|purges_due)\b", statement)]
    assert len(asked) >= 12
    for statement, parameters in asked:
        with catalog.database.read() as connection:
            if catalog.database.is_sqlite:
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
                scans = [row[-1] for row in plan if re.fullmatch(r"SCAN (jobs|purges_due)", row[-1])]
            else:
                # A few rows are always read in order; asked not to, the planner shows whether it has another way.
                connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
                plan = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).all()
                scans = [row[0] for row in plan if re.search(r"Seq Scan on (jobs|purges_due)", row[0])]
        assert scans == [], statement


def test_a_second_migration_changes_nothing(database: Database) -> None:
    database.migrate()
    database.migrate()
    database.require_migrated()


def test_a_catalog_that_was_never_made_says_what_to_run(database: Database) -> None:
    with pytest.raises(PrimerError, match=r"run `primer init`"):
        database.require_migrated()


def test_drop_all_leaves_nothing(database: Database) -> None:
    database.migrate()
    database.drop_all()
    assert inspect(database.engine).get_table_names() == []


def test_times_come_back_aware_in_utc_and_compare_across_zones(world: World) -> None:
    local = datetime(2026, 3, 29, 3, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    with world.catalog.database.begin() as connection:
        connection.execute(insert(acls), ACL | {"updated_at": local})
    (stored,) = world.rows(acls)
    assert stored.updated_at == local
    assert stored.updated_at.tzinfo is UTC
    assert world.rows(acls, updated_at=local.astimezone(UTC)) == [stored]


def test_a_time_without_a_zone_is_refused(world: World) -> None:
    with pytest.raises(Exception, match="has no zone"), world.catalog.database.read() as connection:
        connection.execute(jobs.select().where(jobs.c.created_at < datetime(2026, 1, 1)))  # noqa: DTZ001


def test_a_failed_transaction_leaves_nothing(world: World) -> None:
    before = world.snapshot()
    with pytest.raises(IntegrityError), world.catalog.database.begin() as connection:
        connection.execute(insert(acls), [ACL, ACL | {"acl_id": "b"}, ACL])
    assert world.snapshot() == before


def test_a_database_that_cannot_be_reached_is_the_systems_fault_and_hides_the_password(tmp_path: Any) -> None:
    catalog = Catalog(f"postgresql://me:secret@/none?host={tmp_path}", SystemClock(), Random(1))
    with pytest.raises(SystemFault, match="catalog postgresql") as caught:
        catalog.now()
    assert "secret" not in str(caught.value)


def test_a_url_that_is_none_is_named() -> None:
    with pytest.raises(PrimerError, match="PRIMER_DATABASE_URL = 'nonsense'"):
        Database("nonsense", SystemClock())


def test_rows_of_the_first_schema_are_carried_to_the_newest(database: Database) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    values = {"now": "2026-01-01 00:00:00"}
    with database.begin() as connection:
        for statement in (
            "INSERT INTO accounts (tenant_id, active) VALUES ('t', true)",
            "INSERT INTO sources (source_id, tenant_id, library, type, settings, sync, poll_interval_s) "
            "VALUES ('s', 't', 'main', 'drive', '{}', 'poll', 20)",
            "INSERT INTO index_versions (name, recipe, state, created_at) VALUES ('v1', '{}', 'live', :now)",
            "INSERT INTO documents (doc_id, source_id, tenant_id, library, path, uri, title, source_version, version_order, fingerprint, "
            "canonical_doc_id, acl_id, status, event_time) "
            "VALUES ('d', 's', 't', 'main', 'p', 'u', 'n', '1', 1, 'f', 'd', 'a', 'indexed', :now)",
            "INSERT INTO jobs (doc_id, source_id, source_version, index_version, lane, operation, stage, state, not_before, event_time, "
            "created_at) VALUES ('d', 's', '1', 'v1', 'fast', 'upsert', 'chunk', 'pending_chunk', :now, :now, :now)",
            "INSERT INTO index_state (doc_id, index_version, generation, previous_generation, claimed_generation, manifest) "
            "VALUES ('d', 'v1', 1, 0, 1, '{}')",
        ):
            connection.execute(text(statement), values)
    database.migrate()
    with database.read() as connection:
        assert connection.execute(select(jobs.c.state, jobs.c.accepted_pages)).all() == [("pending_chunk", "")]
        assert connection.execute(select(index_state.c.accepted_pages, index_state.c.previous_accepted_pages)).all() == [("", "")]


def test_a_deployment_whose_bodies_have_no_manifests_is_refused_and_left_as_it_is(database: Database) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0008")
        connection.execute(
            text("INSERT INTO contents (content_hash, size, mime, lane, object) VALUES ('h', 1, 'text/plain', 'fast', 'blobs/x')")
        )
    with pytest.raises(PrimerError, match=r"layout of an older Primer.*`primer reset`"):
        database.migrate()
    with database.read() as connection:
        assert connection.execute(text("SELECT content_hash FROM contents")).all() == [("h",)]


def test_documents_that_were_indexed_once_each_become_one_canonical_document_and_its_copies(database: Database) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
    values = {"now": "2026-01-01 00:00:00"}
    document = (
        "INSERT INTO documents (doc_id, source_id, tenant_id, library, path, uri, title, source_version, version_order, fingerprint, "
        "canonical_doc_id, acl_id, status, event_time, bucket, content_hash, deleted_at) "
        "VALUES ('{0}', 's', 't', 'main', '{0}', 'u', 'n', '1', 1, 'f', '{0}', 'acl-{0}', 'indexed', :now, '00', '{1}', {2})"
    )
    job = (
        "INSERT INTO jobs (doc_id, source_id, source_version, index_version, lane, operation, stage, state, not_before, event_time, "
        "created_at) VALUES ('{0}', 's', '1', 'v1', 'fast', 'upsert', 'parse', '{1}', :now, :now, :now)"
    )
    with database.begin() as connection:
        for statement in (
            "INSERT INTO accounts (tenant_id, active) VALUES ('t', true)",
            "INSERT INTO sources (source_id, tenant_id, library, type, settings, sync, poll_interval_s) "
            "VALUES ('s', 't', 'main', 'drive', '{}', 'poll', 20)",
            "INSERT INTO index_versions (name, recipe, state, created_at) VALUES ('v0', '{}', 'retired', :now), ('v1', '{}', 'live', :now)",
            *(document.format(*each) for each in (("a", "h", "NULL"), ("b", "h", "NULL"), ("c", "h", ":now"), ("d", "other", "NULL"))),
            job.format("b", "dead"),
            job.format("d", "pending_parse"),
            "INSERT INTO index_state (doc_id, index_version, generation, previous_generation, claimed_generation, manifest, acl_id) "
            "VALUES ('a', 'v1', 1, 0, 1, '{}', 'acl-a')",
        ):
            connection.execute(text(statement), values)
    database.migrate()
    with database.read() as connection:
        rows = connection.execute(select(canonicals.c.content_hash, canonicals.c.doc_id).order_by(canonicals.c.doc_id)).all()
        assert rows == [("h", "a"), ("other", "d")]
        links = select(documents.c.doc_id, documents.c.canonical_doc_id, documents.c.status).order_by(documents.c.doc_id)
        assert connection.execute(links).all() == [
            ("a", "a", "indexed"), ("b", "a", "pending"), ("c", "c", "indexed"), ("d", "d", "indexed")
        ]  # fmt: skip
        made = select(jobs.c.doc_id, jobs.c.index_version, jobs.c.operation, jobs.c.state).order_by(jobs.c.job_id)
        assert connection.execute(made).all() == [
            ("b", "v1", "upsert", "superseded"),
            ("d", "v1", "upsert", "pending_parse"),
            ("a", "v1", "acl", "pending_write"),
            ("b", "v1", "copy", "pending_write"),
        ]
        assert connection.execute(select(index_state.c.acl_ids, index_state.c.is_copy)).all() == [(["acl-a"], False)]


def test_what_was_indexed_and_what_died_before_there_was_a_ledger_is_in_it(database: Database) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with database.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0008")
    values = {"now": "2026-01-01 00:00:00", "then": "2026-01-02 00:00:00"}
    document = (
        "INSERT INTO documents (doc_id, source_id, tenant_id, library, path, uri, title, source_version, version_order, fingerprint, "
        "canonical_doc_id, acl_id, status, event_time, deleted_at) "
        "VALUES ('{0}', 's', 't', 'main', '{0}', 'u', 'n', '2', 2, 'f', '{0}', 'a', 'indexed', :now, {1})"
    )
    state = (
        "INSERT INTO index_state (doc_id, index_version, generation, previous_generation, claimed_generation, manifest, content_hash, "
        "indexed_version, outcome, flipped_at) VALUES ('{0}', 'v1', {1}, 0, 1, '{2}', 'h', {3}, {4}, {5})"
    )
    job = (
        "INSERT INTO jobs (doc_id, source_id, source_version, content_hash, index_version, lane, operation, stage, state, reason, error, "
        "not_before, event_time, created_at, finished_at, generation) "
        "VALUES ('{0}', 's', '2', 'h2', 'v1', 'fast', 'upsert', 'parse', '{1}', 'corrupt', 'broken', :now, :now, :now, :then, {2})"
    )
    with database.begin() as connection:
        for statement in (
            "INSERT INTO accounts (tenant_id, active) VALUES ('t', true)",
            "INSERT INTO sources (source_id, tenant_id, library, type, settings, sync, poll_interval_s) "
            "VALUES ('s', 't', 'main', 'drive', '{}', 'poll', 20)",
            "INSERT INTO index_versions (name, recipe, state, created_at) VALUES ('v1', '{}', 'live', :now)",
            *(document.format(doc_id, ":now" if doc_id == "gone" else "NULL") for doc_id in ("dead", "gone", "good", "new", "worse")),
            state.format("good", 1, '{"a"\\: 1, "b"\\: 1}', "'1'", "'indexed'", ":now"),
            state.format("worse", 1, '{"c"\\: 1}', "'1'", "'indexed'", ":now"),
            state.format("gone", 2, "{}", "'1'", "'empty'", ":now"),
            state.format("new", 0, "{}", "NULL", "NULL", "NULL"),
            job.format("dead", "dead", "NULL"),
            job.format("worse", "dead", "1"),
            job.format("new", "writing", "1"),
        ):
            connection.execute(text(statement), {name: value for name, value in values.items() if f":{name}" in statement})
    database.migrate()
    told = (ledger.c.doc_id, ledger.c.outcome, ledger.c.source_version, ledger.c.error, ledger.c.indexed_version, ledger.c.chunks)
    with database.read() as connection:
        assert connection.execute(select(*told).order_by(ledger.c.doc_id)).all() == [
            ("dead", "dead", "2", "broken", None, 0),
            ("gone", "deleted", "1", None, None, 0),
            ("good", "indexed", "1", None, "1", 2),
            ("worse", "dead", "2", "broken", "1", 1),
        ]
        assert set(connection.execute(select(ledger.c.attempt_ulid)).scalars()) == {LEAST_ULID}
        ended = select(ledger.c.ended_at, ledger.c.indexed_at).where(ledger.c.doc_id == "worse")
        assert connection.execute(ended).one() == (START + timedelta(days=1), START)
        marks = select(jobs.c.doc_id, jobs.c.attempt_ulid).where(jobs.c.attempt_ulid.is_not(None))
        assert connection.execute(marks).all() == [("new", LEAST_ULID)], "a write under way goes on"
