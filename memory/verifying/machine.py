"""Checks of the machinery: the triggers that refuse, what indexes and constraints hold, the claims,
the purges."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db.models import Model

from memory import guards, outside, units
from memory.findings import Found
from memory.lately import ask
from memory.models import Claim, PurgeProof
from memory.proof import prove_again_all
from memory.verifying.check import Check, Look

#: Hours after the end of its lease that a claim may stand.
# Why: a killed worker's claims are let go by the next run of its stage, minutes later; while no
# worker runs at all, the board says so.
# Calibrate: the longest pause between two passes of a house that is well.
LEASE_SLACK_HOURS = 1

#: Purges whose proof is made again by one look; the next day's look takes the next ones.
# Why: each goes over every text there is.
# Calibrate: seconds of `verify --check purges`.
PROOFS_A_LOOK = 2

#: Apps whose tables are ours.
APPS = ("memory", "review", "recall", "exporter")

TRIGGERS = """
SELECT c.relname, t.tgname, t.tgtype::int, p.proname, t.tgargs,
    t.tgenabled IN ('O', 'A') AND t.tgqual IS NULL AND t.tgattr::text = ''
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE c.relnamespace = 'public'::regnamespace AND t.tgname = ANY(%(names)s)
    AND p.pronamespace = 'public'::regnamespace
"""

BODIES = """
SELECT proname, prosrc FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND proname = ANY(%(names)s)
"""

# Of an index its columns: a primary key, and what is unique by one column, are known by these.
INDEXES = """
SELECT c.relname, t.relname, i.indisvalid AND i.indisready AND i.indislive,
    i.indisprimary, i.indisunique AND i.indpred IS NULL, ARRAY(
        SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) ORDER BY 1)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
WHERE t.relnamespace = 'public'::regnamespace
"""

CONSTRAINTS = """
SELECT k.conrelid::regclass::text, k.conname, k.contype::text, k.convalidated,
    ARRAY(SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = k.conrelid AND a.attnum = ANY(k.conkey) ORDER BY 1)
FROM pg_constraint k WHERE k.connamespace = 'public'::regnamespace AND k.contype IN ('c', 'f')
"""

# One after another, as many a day as are looked at: whoever looks every day has looked at each.
PROOFS = """
SELECT id FROM (
    SELECT id, row_number() OVER (ORDER BY ledger_id) - 1 AS place, count(*) OVER () AS all_of_them
    FROM (SELECT ledger_id, max(id) AS id FROM memory_purgeproof GROUP BY ledger_id) newest
) t
WHERE (place - %(day)s * %(most)s %% all_of_them + all_of_them) %% all_of_them < %(most)s
"""


def triggers(look: Look) -> Iterator[Found]:
    """Tables that would let a row be changed: a trigger is gone, asleep, or does something else
    than it should; a function of ours says something else than the migrations made it say."""
    wanted, bodies = guards.wanted_triggers(), guards.bodies()
    look.looked += len(wanted) + len(bodies)
    names = sorted({name for _, name in wanted})
    standing: dict[tuple[str, str], tuple[guards.Trigger, bool]] = {
        (table, name): (guards.Trigger(kind, function, _arguments(given)), awake)
        for table, name, kind, function, given, awake in ask(TRIGGERS, {"names": names})
    }
    for at, trigger in sorted(wanted.items()):
        name = ".".join(at)
        there, awake = standing.get(at, (None, False))
        if there is None or not awake:
            wrong: dict[str, Any] = {"wrong": "missing" if there is None else "asleep"}
        elif there.columns != trigger.columns:
            wrong = {"columns": sorted(there.columns ^ trigger.columns)}
        elif there != trigger:
            wrong = {"wrong": "another", "calls": there.function, "kind": there.kind}
        else:
            continue
        yield Found("trigger", name, None, wrong)
    said: dict[str, list[str]] = {}
    for name, body in ask(BODIES, {"names": sorted(bodies)}):
        said.setdefault(name, []).append(body)
    for name, body in sorted(bodies.items()):
        if name not in said:
            yield Found("function", name, None, {"wrong": "missing"})
        elif said[name] != [body]:
            yield Found("function", name, None, {"wrong": "says something else"})


def _arguments(given: bytes | memoryview) -> frozenset[str]:
    """The columns that a trigger was made with: each ends with a zero byte."""
    return frozenset(bytes(given).decode().split("\0")) - {""}


def indexes(look: Look) -> Iterator[Found]:
    """Indexes and constraints of the models that are missing, or that the database does not use or
    did not hold to what was there."""
    by_name: dict[str, bool] = {}
    by_columns: dict[tuple[str, tuple[str, ...], str], bool] = {}
    for name, table, valid, primary, unique, columns in ask(INDEXES, {}):
        by_name[name] = valid
        for kind, is_so in (("primary", primary), ("unique", primary or unique)):
            if is_so:
                at = (table, tuple(columns), kind)
                by_columns[at] = valid or by_columns.get(at, False)
    for table, name, kind, valid, columns in ask(CONSTRAINTS, {}):
        if kind == "c":
            by_name[name] = valid
        else:
            by_columns[table, tuple(columns), "foreign"] = valid
    for model in _models():
        table = model._meta.db_table
        for thing in (*model._meta.indexes, *model._meta.constraints):
            look.looked += 1
            if not by_name.get(thing.name, False):
                wrong = "invalid" if thing.name in by_name else "missing"
                yield Found("index", thing.name, None, {"table": table, "wrong": wrong})
        for column, kind in _held(model):
            look.looked += 1
            at = (table, (column,), kind)
            if not by_columns.get(at, False):
                wrong = "invalid" if at in by_columns else "missing"
                detail = {"table": table, "wrong": f"{wrong}: {kind}"}
                yield Found("index", f"{table}.{column}", None, detail)


def _models() -> list[type[Model]]:
    return [model for label in APPS for model in apps.get_app_config(label).get_models()]


def _held(model: type[Model]) -> Iterator[tuple[str, str]]:
    """Columns of a model that are held by themselves: its key, what is unique, what leads on."""
    for field in model._meta.local_concrete_fields:
        if field.primary_key:
            yield str(field.column), "primary"
        elif field.unique:
            yield str(field.column), "unique"
        if field.remote_field and getattr(field, "db_constraint", False):
            yield str(field.column), "foreign"


def leases(look: Look) -> Iterator[Found]:
    """Units that a worker has in hand long after its lease ended."""
    look.looked += Claim.objects.exclude(worker="").count()
    over = look.now - timedelta(hours=LEASE_SLACK_HOURS)
    held = Claim.objects.exclude(worker="").filter(lease_until__lt=over).order_by("pk")
    rows = list(held[: look.most + 1])
    look.beyond += max(held.count() - len(rows), 0) if len(rows) > look.most else 0
    owners = units.owners([row.unit for row in rows])
    for row in rows:
        detail = {"stage": row.stage, "worker": row.worker, "until": f"{row.lease_until:%F %T}Z"}
        yield Found("unit", row.unit, owners.get(row.unit), detail)


def purges(look: Look) -> Iterator[Found]:
    """Purges whose words stand somewhere again, in a table or in a file of this machine; some of
    the purges each day, one after another."""
    values = {"day": look.now.toordinal(), "most": PROOFS_A_LOOK}
    proofs = PurgeProof.objects.in_bulk([pk for (pk,) in ask(PROOFS, values)])
    look.looked += len(proofs)
    if not proofs:
        return
    for pk, found in prove_again_all(list(proofs.values()), folders=outside.folders()).items():
        if found.wrong:
            named = sorted({f"{one.place}.{one.column}".rstrip(".") for one in found.wrong})
            yield Found("purge", str(proofs[pk].ledger_id), None, {"proof": pk, "places": named})


CHECKS = (
    Check("triggers", "every frozen table refuses UPDATE, DELETE and TRUNCATE", triggers),
    Check("indexes", "every index, key and constraint is there and valid", indexes),
    Check("leases", "no unit is in a worker's hand long after its lease", leases),
    Check("purges", "what was purged stands nowhere (a sample)", purges),
)
