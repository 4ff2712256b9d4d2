"""What Postgres refuses: the record and the ledgers are append-only, for whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, ProgrammingError, connection, transaction

from argus.owner import as_owner, look
from memory import guards
from memory.guards import FROZEN, READ_ONLY
from memory.models import AccessKey, CaptureReceipt
from tests.memory import books

#: Tables of memory whose rows may come, change and go. A table is in here or in FROZEN.
STATE = {
    "memory_accesskey", "memory_centroid", "memory_claim", "memory_collection", "memory_cooldown",
    "memory_distilleditem", "memory_episode", "memory_episodeturn", "memory_group",
    "memory_pathrule", "memory_pin", "memory_posting", "memory_principal",
    "memory_principal_groups", "memory_project", "memory_projectalias",
    "memory_searchtext", "memory_session", "memory_term",
    "memory_tokenday", "memory_turnvector", "memory_waitingitem", "memory_waitingnote",
    "review_card",
}  # fmt: skip

#: Refused for want of a right, or by the trigger.
REFUSED = "42501"

ROLES: dict[str, Callable[[], Any]] = {"application": nullcontext, "owner": as_owner}


@pytest.fixture
def filled(clone_db: str, local: Callable[..., None]) -> Iterator[None]:
    """A database of its own with a row in every frozen table."""
    books.fill()
    assert {table: books.count(table) > 0 for table in FROZEN} == dict.fromkeys(FROZEN, True)
    yield


def refused(statement: str) -> str | None:
    """None when the database refuses this for want of a right, else what happened instead."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
            changed = cursor.rowcount
            transaction.set_rollback(True)
    except DatabaseError as error:
        state = getattr(error.__cause__, "sqlstate", "")
        return None if state == REFUSED else f"{state}: {error}"
    return f"passed, {changed} rows"


def columns(table: str) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, udt_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND table_name = %s",
            [table],
        )
        return dict(cursor.fetchall())


#: A value of each type that differs from the one that stands.
CHANGED = {
    "text": "{0} || 'x'", "bool": "NOT {0}", "int4": "coalesce({0}, 0) + 1",
    "int8": "coalesce({0}, 0) + 1", "float8": "CASE WHEN {0} > 0.5 THEN 0.1 ELSE 0.9 END",
    "jsonb": "'{{\"changed\": 1}}'", "timestamptz": "coalesce({0}, now()) + interval '1 s'",
    "uuid": "gen_random_uuid()", "_text": "array_append({0}, 'x')", "_int8": "array_append({0}, 1)",
    "_uuid": "array_append({0}, gen_random_uuid())", "bytea": "{0} || 'x'::bytea",
    "date": "{0} + 1", "tsvector": "{0} || 'changed'::tsvector", "xid8": "'1'::xid8",
    "halfvec": "array_fill(0.5::real, ARRAY[768])::halfvec",
}  # fmt: skip


def change(table: str, column: str, kind: str) -> str:
    value = CHANGED[kind].format(f'"{column}"')
    return f'UPDATE {table} SET "{column}" = {value}'


# Tables.


@pytest.mark.django_db
def test_every_table_of_memory_is_frozen_or_known_as_state() -> None:
    tables = {
        name
        for name in connection.introspection.table_names()
        if name.startswith(("memory_", "recall_", "review_", "exporter_"))
    }
    assert tables == STATE | set(FROZEN)
    assert not STATE & set(FROZEN)


@pytest.mark.django_db
def test_the_triggers_allow_the_columns_of_the_table_and_no_other() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, t.tgargs FROM pg_trigger t"
            " JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgname = 'argus_frozen'"
        )
        found = {
            table: tuple(bytes(args).decode().split("\0")[:-1]) for table, args in cursor.fetchall()
        }
    assert found == FROZEN
    # What later migrations froze is frozen whole, each table by one of them.
    first = import_module("memory.migrations.0002_guards").FROZEN
    pages = import_module("memory.migrations.0007_page_guards")
    later = (
        "memory_feedback",
        *import_module("recall.migrations.0002_guards").TABLES,
        *import_module("review.migrations.0002_guards").FROZEN,
        *import_module("exporter.migrations.0002_guards").TABLES,
        *import_module("memory.migrations.0010_operating_guards").TABLES,
    )
    runs = {"memory_stagerun": pages.RUN_NOW}
    assert first | dict.fromkeys(later, ()) | pages.NEW | runs == FROZEN
    assert guards.missing_triggers(connection) == []
    for table, named in FROZEN.items():
        assert set(named) <= set(columns(table))


def test_it_says_which_trigger_is_gone(clone_db: str) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memory_note DISABLE TRIGGER argus_frozen")
        cursor.execute("DROP TRIGGER argus_no_truncate ON memory_rawitem")
    assert guards.missing_triggers(connection) == [
        "memory_note.argus_frozen",
        "memory_rawitem.argus_no_truncate",
    ]


# Rights.


@pytest.mark.django_db
def test_the_rights_of_the_application_are_those_of_the_table() -> None:
    role = settings.ARGUS_APP_ROLE
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, privilege_type FROM information_schema.role_table_grants"
            " WHERE table_schema = 'public' AND grantee = %s",
            [role],
        )
        found: dict[str, set[str]] = {}
        for table, right in cursor.fetchall():
            found.setdefault(table, set()).add(right)
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.column_privileges"
            " WHERE table_schema = 'public' AND grantee = %s AND privilege_type = 'UPDATE'",
            [role],
        )
        changeable: dict[str, set[str]] = {}
        for table, column in cursor.fetchall():
            changeable.setdefault(table, set()).add(column)
    for table in connection.introspection.table_names():
        if table in READ_ONLY:
            wanted = {"SELECT"}
        elif table in FROZEN:
            wanted = {"SELECT", "INSERT"}
            assert changeable.get(table, set()) == set(FROZEN[table]), table
        else:
            wanted = {"SELECT", "INSERT", "UPDATE", "DELETE"}
        assert found.pop(table) == wanted, table
    assert not found


@pytest.mark.django_db
def test_nobody_else_has_a_right_on_anything() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, grantee FROM information_schema.role_table_grants"
            " WHERE table_schema = 'public' AND grantee NOT IN (%s, %s)",
            [settings.ARGUS_APP_ROLE, books.owner_role()],
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
            " AND proname = ANY(%s) AND NOT has_function_privilege('public', oid, 'EXECUTE')",
            [list(guards.FUNCTIONS)],
        )
        assert {name for (name,) in cursor.fetchall()} == set(guards.FUNCTIONS)


@pytest.mark.django_db
def test_the_application_is_an_ordinary_role() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.rolname, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb,"
            " has_schema_privilege('public', 'CREATE'),"
            " pg_has_role(d.datdba, 'MEMBER'),"
            " (SELECT count(*) FROM pg_class WHERE relowner = r.oid)"
            " FROM pg_roles r, pg_database d"
            " WHERE r.rolname = current_user AND d.datname = current_database()"
        )
        assert cursor.fetchone() == (settings.ARGUS_APP_ROLE, *[False] * 6, 0)
    facts = look()
    assert (facts.role_found, facts.role_superuser, facts.role_is_owner) == (True, False, False)


def test_a_table_made_later_is_open_to_the_application(clone_db: str) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE later (id bigserial PRIMARY KEY, word text)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO later (word) VALUES ('a')")
        cursor.execute("UPDATE later SET word = 'b'")
        cursor.execute("DELETE FROM later")


# Refusals.


@pytest.mark.parametrize("role", ROLES)
def test_it_refuses_to_change_or_remove_what_is_frozen(filled: None, role: str) -> None:
    passed: dict[str, str] = {}
    with ROLES[role]():
        for table in FROZEN:
            first = min(columns(table), key=lambda name: name != "id")
            tries = [
                f"DELETE FROM {table}",
                f"TRUNCATE {table}",
                f"TRUNCATE {table} CASCADE",
                f"MERGE INTO {table} t USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE",
                f"WITH gone AS (DELETE FROM {table} RETURNING 1) SELECT * FROM gone",
                f'INSERT INTO {table} SELECT * FROM {table} ON CONFLICT ("{first}")'
                f' DO UPDATE SET "{first}" = EXCLUDED."{first}"',
            ]
            passed |= {one: said for one in tries if (said := refused(one))}
    if role == "owner":
        # A foreign key stops a bare TRUNCATE even before the trigger is asked.
        passed = {one: said for one, said in passed.items() if not said.startswith("0A000")}
        passed = {
            one: said
            for one, said in passed.items()
            # Nothing changes where the only column that would is the key itself.
            if not ("ON CONFLICT" in one and table_of(one) in NAMED)
        }
    assert passed == {}


#: Frozen but for named columns: for the owner an UPDATE that changes nothing passes there.
NAMED = {table for table, named in FROZEN.items() if named}


def table_of(statement: str) -> str:
    return statement.split()[2]


@pytest.mark.parametrize("role", ROLES)
def test_it_refuses_a_change_of_every_column_but_the_named_ones(filled: None, role: str) -> None:
    passed: dict[str, str] = {}
    with ROLES[role]():
        for table, named in FROZEN.items():
            for column, kind in columns(table).items():
                if column not in named and (said := refused(change(table, column, kind))):
                    passed[f"{table}.{column}"] = said
    assert passed == {}


@pytest.mark.parametrize("role", ROLES)
def test_it_allows_a_change_of_the_named_columns(filled: None, role: str) -> None:
    person = "(SELECT min(id) FROM memory_principal)"
    with ROLES[role]():
        for table in NAMED:
            for column in FROZEN[table]:
                said = refused(change(table, column, columns(table)[column]))
                if value := {"memory_dedupverdict": "approved", "memory_proposal": "dropped"}.get(
                    table if column == "status" else ""
                ):
                    said = refused(f"UPDATE {table} SET status = '{value}'")
                elif column == "rejection_id":
                    said = refused(f"UPDATE {table} SET rejection_id = NULL")
                elif column == "decided_by_id":
                    said = refused(f"UPDATE {table} SET decided_by_id = {person}")
                assert said and said.startswith("passed"), f"{table}.{column}: {said}"


@pytest.mark.parametrize("role", ROLES)
def test_it_refuses_a_named_column_together_with_another(filled: None, role: str) -> None:
    with ROLES[role]():
        assert refused("UPDATE memory_note SET confidence = 0.9, content = content || '!'") is None
        assert (
            refused("UPDATE memory_dedupverdict SET status = 'undone', verdict = 'refine'") is None
        )


@pytest.mark.parametrize("role", ROLES)
def test_it_refuses_the_orm_like_anybody(filled: None, role: str) -> None:
    frozen = [model for model in apps.get_models() if model._meta.db_table in FROZEN]
    assert len(frozen) == len(FROZEN)
    with ROLES[role]():
        for model in frozen:
            rows = model._base_manager.all()
            before = rows.count()
            name = next(
                field.attname
                for field in model._meta.concrete_fields
                if not field.primary_key and field.attname not in FROZEN[model._meta.db_table]
                and field.get_internal_type() in ("TextField", "IntegerField", "ForeignKey")
            )  # fmt: skip
            value = "rewritten" if name in columns_of_text(model) else 99
            with pytest.raises(ProgrammingError), transaction.atomic():
                rows.update(**{name: value})
            with pytest.raises(ProgrammingError), transaction.atomic():
                rows._raw_delete(rows.db)
            row = rows.first()
            assert row is not None
            setattr(row, name, value)
            with pytest.raises(ProgrammingError), transaction.atomic():
                row.save()
            assert rows.count() == before


def columns_of_text(model: Any) -> set[str]:
    fields = model._meta.concrete_fields
    return {field.attname for field in fields if field.get_internal_type() == "TextField"}


WAYS_ROUND = [
    "SET session_replication_role = replica",
    "SET LOCAL session_replication_role = replica",
    "SELECT set_config('session_replication_role', 'replica', false)",
    "ALTER TABLE memory_rawitem DISABLE TRIGGER argus_frozen",
    "ALTER TABLE memory_rawitem DISABLE TRIGGER ALL",
    "ALTER TABLE memory_rawitem DISABLE TRIGGER USER",
    "DROP TRIGGER argus_frozen ON memory_rawitem",
    "ALTER TABLE memory_rawitem RENAME TO other",
    "ALTER TABLE memory_rawitem OWNER TO CURRENT_USER",
    "ALTER TABLE memory_rawitem ADD COLUMN note text",
    "DROP TABLE memory_rawitem CASCADE",
    "CREATE OR REPLACE FUNCTION argus_frozen() RETURNS trigger LANGUAGE plpgsql"
    " AS 'BEGIN RETURN OLD; END'",
    "CREATE FUNCTION public.to_jsonb(memory_rawitem) RETURNS jsonb LANGUAGE sql AS 'SELECT null'",
    "DROP FUNCTION argus_frozen() CASCADE",
    "ALTER FUNCTION argus_frozen() RENAME TO other",
    "ALTER FUNCTION argus_purge(bigint[], text, text, jsonb) OWNER TO CURRENT_USER",
    "CREATE RULE away AS ON DELETE TO memory_rawitem DO INSTEAD NOTHING",
    "CREATE TRIGGER away BEFORE INSERT ON memory_rawitem"
    " FOR EACH ROW EXECUTE FUNCTION argus_frozen()",
    "SET ROLE {owner}",
    "SET SESSION AUTHORIZATION {owner}",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "ALTER DATABASE {database} SET session_replication_role = replica",
    "INSERT INTO memory_purgeledger (actor, reason, counts, hashes, files_pending, created_at)"
    " VALUES ('me', 'because', '{{}}', '[]', false, now())",
    "COPY memory_purgeledger (actor) FROM PROGRAM 'echo me'",
    "DELETE FROM django_migrations",
    "INSERT INTO django_migrations (app, name, applied) VALUES ('memory', '9', now())",
    "SELECT lo_import('/etc/hostname')",
]


@pytest.mark.django_db
@pytest.mark.parametrize("way", WAYS_ROUND)
def test_the_application_finds_no_way_round(way: str) -> None:
    owner = books.owner_role()
    statement = way.format(owner=owner, database=connection.settings_dict["NAME"])
    assert refused(statement) is None


@pytest.mark.parametrize("role", ROLES)
def test_a_temporary_ledger_is_no_ledger(filled: None, role: str) -> None:
    """A table of the same name that is found first must not pass for the ledger of purges."""
    before = books.count("memory_rawitem")
    with ROLES[role]():
        with pytest.raises(ProgrammingError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "CREATE TEMP TABLE memory_purgeledger AS"
                " SELECT pg_current_xact_id() AS xact, transaction_timestamp() AS xact_at"
            )
            cursor.execute("SET LOCAL search_path = pg_temp, public")
            cursor.execute("DELETE FROM public.memory_evidence")
        assert books.count("memory_rawitem") == before


@pytest.mark.django_db
def test_the_ledger_of_purges_is_written_by_the_function_alone() -> None:
    books.purge([], reason="nothing to remove")
    for statement in (
        "UPDATE memory_purgeledger SET actor = 'nobody'",
        "UPDATE memory_purgeledger SET files_pending = true",
        "DELETE FROM memory_purgeledger",
    ):
        assert refused(statement) is None


@pytest.mark.django_db
def test_a_key_that_posted_something_is_revoked_and_not_removed() -> None:
    """Its receipts are frozen, so the row they point at stays."""
    from django.db.models import ProtectedError

    from memory.access import create_key

    create_key(owner="alice", scopes=["capture"])
    row = AccessKey.objects.get()
    CaptureReceipt.objects.create(owner=row.principal, key=row, seen=0, stored=0, duplicates=0)
    with pytest.raises(ProtectedError):
        row.delete()
