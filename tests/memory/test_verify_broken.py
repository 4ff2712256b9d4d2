"""Each check sees what it is there for: something is broken past every guard, and is found.

How: one database with a row in every frozen table, whole at the beginning; each break is made by
the server's superuser in a transaction of its own, looked at there, and taken back.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from memory import proof
from memory.access import principal
from memory.guards import FROZEN
from memory.lately import ask
from memory.models import DedupVerdict, Injection, Note, PurgeLedger, PurgeProof, StageRun
from memory.stages.embed import embed
from memory.text.passages import Passages
from memory.verifying import machine
from memory.verifying.check import Look
from memory.verifying.offered import checks
from tests import cluster, factories
from tests.memory import books, breaking
from tests.memory.breaking import after, do, look, one

#: Days after the stories of the books: whatever had to be settled is.
NOW = factories.at(days=30)

#: Retired long before NOW, so that no race explains what came after.
LONG_AGO = "timestamptz '2026-03-06 09:00Z'"


@pytest.fixture(scope="module")
def house(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The filled database, under the superuser's connection."""
    with django_db_blocker.unblock(), cluster.copied(template_db), breaking.by_words():
        books.fill()
        settle()
        with breaking.superuser():
            yield


def settle() -> None:
    """Every note and item with its search text and vector, by a run that left nothing."""
    alice = principal("alice")
    factories.note(alice, "The staging server listens on port 8443 since Monday.")
    embed(clock=factories.clock(factories.at(days=4)))
    embed(clock=factories.clock(factories.at(days=29)))
    assert StageRun.objects.filter(stage="embed", report__pending=0).exists()


def test_it_finds_nothing_in_a_house_that_is_whole(house: None) -> None:
    assert {name: look(name, NOW) for name in checks()} == dict.fromkeys(checks(), [])


#: Check -> break -> kind of what is found. `{note}`, `{item}`, `{text}` are one that is there.
BREAKS: dict[str, dict[str, str]] = {
    "items": {"UPDATE memory_rawitem SET body = body || '!' WHERE id = {item}": "item"},
    "quotes": {
        "UPDATE memory_rawitem SET body = 'x' || body, sha256 = encode(sha256(convert_to("
        "'x' || body, 'UTF8')), 'hex') WHERE id = {item}": "note",
        "UPDATE memory_evidence SET quote = quote || '!' WHERE note_id = '{note}'": "note",
        "UPDATE memory_evidence SET sha256 = '0' WHERE note_id = '{note}'": "note",
        'UPDATE memory_evidence SET start = 9, "end" = 3 WHERE note_id = \'{note}\'': "note",
        "UPDATE memory_evidence SET start = -1 WHERE note_id = '{note}'": "note",
        'UPDATE memory_evidence SET "end" = "end" + 100000 WHERE note_id = \'{note}\''
        "": "note",
    },
    "parents": {
        "DELETE FROM memory_evidence WHERE note_id = '{note}'": "note",
        "DELETE FROM memory_rawitem WHERE id = {item}": "note",
        "DELETE FROM memory_note WHERE id = '{note}'": "note",
        "UPDATE memory_evidence SET parent_id = gen_random_uuid() WHERE note_id = '{note}'": "note",
        "UPDATE memory_evidence SET parent_id = note_id WHERE note_id = '{note}'": "note",
        "DELETE FROM memory_episode": "episode",
    },
    "waiting": {
        "INSERT INTO memory_waitingnote VALUES ('text', '{note}')": "note",
        "DELETE FROM memory_waitingnote WHERE note_id = '{note}'": "note",
        "INSERT INTO memory_waitingitem VALUES ('distilled', {item})": "item",
        "INSERT INTO memory_waitingitem VALUES ('vector', 99999)": "item",
        # What is gone without a trigger lacks something, and waits for nobody.
        "DELETE FROM memory_searchtext WHERE note_id = '{note}'": "note",
        "DELETE FROM memory_turnvector WHERE raw_item_id = {item}": "item",
    },
    "texts": {
        "DELETE FROM memory_searchtext WHERE note_id = '{note}'": "note",
        "DELETE FROM memory_searchtext WHERE raw_item_id = {item}": "item",
        "DELETE FROM memory_posting WHERE text_id = {text}": "note",
        "UPDATE memory_posting SET live = false WHERE text_id = {text}": "note",
        f"UPDATE memory_note SET deleted_at = {LONG_AGO} WHERE id = '{{note}}'": "note",
    },
    "vectors": {
        "UPDATE memory_note SET embedding = NULL WHERE id = '{note}'": "note",
        "UPDATE memory_note SET embedding_model = 'older' WHERE id = '{note}'": "note",
        "UPDATE memory_note SET embedding = array_fill(0, ARRAY[768])::halfvec"
        " WHERE id = '{note}'": "note",
        "UPDATE memory_turnvector SET embedding = array_fill(0, ARRAY[768])::halfvec"
        " WHERE raw_item_id = {item}": "item",
        "UPDATE memory_turnvector SET model = 'older' WHERE raw_item_id = {item}": "item",
    },
    "orphans": {
        "UPDATE memory_turnvector SET raw_item_id = 99999 WHERE raw_item_id = {item}": "vector",
        "UPDATE memory_searchtext SET note_id = gen_random_uuid() WHERE id = {text}": "search text",
        "UPDATE memory_searchtext SET raw_item_id = 99999"
        " WHERE raw_item_id = {item}": "search text",
        "DELETE FROM memory_searchtext WHERE id = {text}": "search text",
    },
    "statistics": {
        "UPDATE memory_collection SET texts = texts + 1 WHERE NOT raw": "collection",
        "UPDATE memory_collection SET length = length - 1 WHERE raw": "collection",
        "DELETE FROM memory_collection": "collection",
        "DELETE FROM memory_searchtext WHERE id = {text}": "collection",
    },
    "triggers": {
        "DROP TRIGGER argus_no_truncate ON memory_rawitem": "trigger",
        "DROP TRIGGER argus_unindex ON memory_searchtext": "trigger",
        "ALTER TABLE memory_note DISABLE TRIGGER argus_frozen": "trigger",
        "DROP TRIGGER argus_frozen ON memory_evidence;"
        " CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON memory_evidence"
        " FOR EACH ROW EXECUTE FUNCTION argus_frozen('quote')": "trigger",
        "ALTER FUNCTION argus_unindex() RENAME TO asleep": "function",
        "CREATE OR REPLACE FUNCTION argus_frozen() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NULL; END'": "function",
        "CREATE OR REPLACE FUNCTION argus_frozen() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF false THEN RAISE EXCEPTION ''no''; END IF; RETURN NEW; END'": "function",
        "CREATE OR REPLACE FUNCTION argus_analyze() RETURNS void LANGUAGE sql AS"
        " 'SELECT'": "function",
        "CREATE FUNCTION argus_purge(bigint) RETURNS void LANGUAGE sql AS 'SELECT'": "function",
        "DROP TRIGGER argus_frozen ON memory_evidence;"
        " CREATE FUNCTION kind() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        " CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON memory_evidence"
        " FOR EACH ROW EXECUTE FUNCTION kind()": "trigger",
        "DROP TRIGGER argus_frozen ON memory_evidence;"
        " CREATE TRIGGER argus_frozen AFTER UPDATE OR DELETE ON memory_evidence"
        " FOR EACH STATEMENT EXECUTE FUNCTION argus_frozen()": "trigger",
        "DROP TRIGGER argus_frozen ON memory_evidence;"
        " CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON memory_evidence"
        " FOR EACH ROW WHEN (OLD.start < 0) EXECUTE FUNCTION argus_frozen()": "trigger",
    },
    "indexes": {
        "DROP INDEX note_nearest": "index",
        "DROP INDEX injection_notes": "index",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'turn_nearest'::regclass"
        "": "index",
        "ALTER TABLE memory_rawitem DROP CONSTRAINT raw_item_dedup": "index",
        "DROP INDEX raw_item_record": "index",
        "ALTER TABLE memory_rawitem DROP CONSTRAINT raw_item_goes": "index",
        "ALTER TABLE memory_stagerun DROP CONSTRAINT memory_stagerun_pkey CASCADE": "index",
        "UPDATE pg_index SET indisvalid = false WHERE indrelid = 'memory_note'::regclass"
        " AND indisprimary": "index",
    },
    "leases": {
        "INSERT INTO memory_claim (stage, unit, worker, lease_until, attempts, content_failures,"
        " parked_reason, created_at) VALUES ('distill', 'item:{item}', 'gone:1',"
        f" {LONG_AGO}, 1, 0, '', now())": "unit",
    },
    "holds": {
        "DELETE FROM memory_note WHERE id = (SELECT target_id FROM memory_dedupverdict"
        " WHERE status = 'pending')": "verdict",
        "UPDATE memory_dedupverdict SET target_id = NULL WHERE status = 'pending'": "verdict",
        "UPDATE memory_note SET deleted_at = timestamptz '2026-01-01 00:00Z' WHERE id ="
        " (SELECT note_id FROM memory_dedupverdict WHERE status = 'pending')": "verdict",
        "UPDATE memory_note SET deleted_at = now(), retired_reason = 'rebuilt' WHERE id ="
        " (SELECT target_id FROM memory_dedupverdict WHERE status = 'pending')": "verdict",
    },
    "neighbours": {
        "UPDATE memory_note SET deleted_at = timestamptz '2026-01-01 00:00Z'"
        " WHERE id = '{note}'; UPDATE memory_dedupverdict SET candidates ="
        " jsonb_build_array(jsonb_build_object('note', '{note}'))": "verdict",
        "UPDATE memory_dedupverdict SET candidates = '\"none\"'": "verdict",
        "UPDATE memory_dedupverdict SET candidates = jsonb_build_object('note', '{note}')":
        "verdict",
        "UPDATE memory_dedupverdict SET candidates = jsonb_build_array('{note}')": "verdict",
        "UPDATE memory_dedupverdict SET candidates ="
        " jsonb_build_array(jsonb_build_object('note', 'no uuid'))": "verdict",
    },
    "injected": {
        f"UPDATE memory_note SET deleted_at = {LONG_AGO} WHERE id = '{{note}}';"
        " UPDATE memory_injection SET note_ids = ARRAY['{note}'::uuid]": "injection",
    },
}  # fmt: skip

CASES = [(check, sql, kind) for check, breaks in BREAKS.items() for sql, kind in breaks.items()]


def there() -> dict[str, object]:
    """One note that is whole, with its evidence and its search text."""
    note = Note.objects.as_pipeline().live(NOW).get(title__startswith="The staging server")
    return {
        "note": note.pk,
        "item": note.evidence.get().raw_item_id,
        "text": one("SELECT id FROM memory_searchtext WHERE note_id = %s", note.pk),
    }


@pytest.mark.parametrize("check, statement, kind", CASES, ids=[c[:2][0] for c in CASES])
def test_it_finds_what_was_broken(house: None, check: str, statement: str, kind: str) -> None:
    ids = there()
    found = after(check, NOW, statement.format(**ids))
    assert kind in {kind for kind, _ in found}, found
    if kind in ("note", "item") and "{" + kind + "}" in statement:
        assert (kind, str(ids[kind])) in found


def test_every_check_is_broken_by_some_test(house: None) -> None:
    elsewhere = {"exported", "fed", "purges"}  # By the apps whose tables those are, and above.
    assert set(checks()) == set(BREAKS) | elsewhere


@pytest.mark.parametrize("table", FROZEN)
def test_it_misses_a_trigger_of_any_frozen_table(house: None, table: str) -> None:
    found = after(
        "triggers", NOW, f"DROP TRIGGER argus_frozen ON {table}",
        f"DROP TRIGGER argus_no_truncate ON {table}",
    )  # fmt: skip
    assert found == [
        ("trigger", f"{table}.argus_frozen"),
        ("trigger", f"{table}.argus_no_truncate"),
    ]


def test_what_another_saw_before_it_went_is_a_race_and_no_finding(house: None) -> None:
    """A worker reads the clock, asks a model, and retires a note minutes later, with that clock."""
    ids = there()
    now = "timestamptz '2026-03-20 09:00Z'"
    with breaking.taken_back():
        for minutes, faults in ((0, 0), (9, 0), (11, 1)):
            do(f"UPDATE memory_note SET deleted_at = {now} - interval '{minutes} min'"
               " WHERE id = %s", ids["note"])  # fmt: skip
            do(f"UPDATE memory_injection SET note_ids = ARRAY[%s::uuid], created_at = {now}",
               ids["note"])  # fmt: skip
            assert len(look("injected", NOW)) == faults * Injection.objects.as_pipeline().count()


def test_it_finds_the_words_of_a_purge_where_they_do_not_stand_by_right(house: None) -> None:
    secret = "The harbour master keeps the second key under the blue crate behind the old crane."
    words = Passages()
    words.add(secret)
    with breaking.taken_back():
        ledger = PurgeLedger.objects.latest("pk")
        PurgeProof.objects.create(ledger=ledger, proved=True, shingles=proof.kept(words))
        assert not look("purges", NOW)
        acts = do("UPDATE memory_act SET reason = %s", f"as I said: {secret}")
        (found,) = look("purges", NOW)
        assert acts and (found.kind, found.reference) == ("purge", str(ledger.pk))
        assert found.detail["places"] == ["memory_act.reason"]
        do("UPDATE memory_rawitem SET body = %s WHERE id = %s", secret, there()["item"])
        assert not look("purges", NOW), "somebody said it again: it stands there by right"


def test_it_finds_the_words_of_a_purge_in_files(house: None, tmp_path: Path, settings: Any) -> None:
    """A vault that a sync tool brought back, a spool of a hook: what lies beside the database."""
    settings.ARGUS = settings.ARGUS.model_copy(update={"home": tmp_path})
    secret = "The harbour master keeps the second key under the blue crate behind the old crane."
    words = Passages()
    words.add(secret)
    with breaking.taken_back():
        ledger = PurgeLedger.objects.latest("pk")
        PurgeProof.objects.create(ledger=ledger, proved=True, shingles=proof.kept(words))
        assert not look("purges", NOW)
        (tmp_path / "a page of secrets.md").write_text(f"# Keys\n\n{secret}\n")
        (found,) = look("purges", NOW)
        assert found.reference == str(ledger.pk)
        assert "page of secrets" not in str(found.detail), "a file is named by a text"


def test_every_purge_has_its_turn(house: None) -> None:
    with breaking.taken_back():
        do("DELETE FROM memory_purgeproof")
        for many in (1, 2, 5):
            do(
                "INSERT INTO memory_purgeledger (actor, reason, counts, hashes, files_pending,"
                " created_at) SELECT 'a', 'b', '{}', '[]', false, now()"
                " FROM generate_series(1, %s)",
                many,
            )
            do(
                "INSERT INTO memory_purgeproof (ledger_id, proved, elsewhere, scanned, shingles,"
                " files_pending, created_at) SELECT id, true, '[]', '{}', '{}', false, now()"
                " FROM memory_purgeledger WHERE id NOT IN (SELECT ledger_id FROM memory_purgeproof)"
            )
            there = PurgeProof.objects.count()
            seen: list[int] = []
            for day in range(-(-there // machine.PROOFS_A_LOOK)):
                values = {"day": NOW.toordinal() + day, "most": machine.PROOFS_A_LOOK}
                seen += [pk for (pk,) in ask(machine.PROOFS, values)]
            assert len(set(seen)) == there <= len(seen)


def test_who_asks_about_the_past_is_told_of_it_on_purpose(house: None) -> None:
    ids = there()
    with breaking.taken_back():
        do(f"UPDATE memory_note SET deleted_at = {LONG_AGO} WHERE id = %s", ids["note"])
        do("UPDATE memory_injection SET note_ids = ARRAY[%s::uuid], created_at = now()",
           ids["note"])  # fmt: skip
        assert look("injected", NOW)
        do('UPDATE memory_injection SET options = \'{"as_of": "2026-03-01T00:00:00Z"}\'')
        assert not look("injected", NOW)
        do("UPDATE memory_injection SET options = '{}', mode = 'open'")
        assert not look("injected", NOW)


def test_a_hold_whose_note_went_since_it_asked_sleeps_and_is_no_finding(house: None) -> None:
    with breaking.taken_back():
        held = DedupVerdict.objects.as_pipeline().get(status="pending")
        do("UPDATE memory_note SET deleted_at = %s WHERE id = %s",
           held.created_at + timedelta(days=1), held.note_id)  # fmt: skip
        assert not look("holds", NOW)


def test_what_waits_for_embed_is_no_finding_before_a_run_left_it_out(house: None) -> None:
    ids = there()
    with breaking.taken_back():
        do("DELETE FROM memory_searchtext WHERE note_id = %s", ids["note"])
        do("UPDATE memory_note SET embedding = NULL WHERE id = %s", ids["note"])
        for now in (factories.at(hours=2), factories.at(hours=20)):
            assert not [f for f in look("texts", now) if f.kind == "note"]
            assert not look("vectors", now)
        do("INSERT INTO memory_claim (stage, unit, worker, attempts, content_failures, parked_at,"
           " parked_reason, created_at) VALUES ('embed', %s, '', 5, 5, now(), 'odd', now())",
           f"note:{ids['note']}")  # fmt: skip
        assert not look("vectors", NOW), "what is parked is told under Parked"
        do("DELETE FROM memory_stagerun WHERE stage = 'embed'")
        assert not look("texts", NOW)


def test_a_lease_that_ended_just_now_is_no_finding(house: None) -> None:
    sql = (
        "INSERT INTO memory_claim (stage, unit, worker, lease_until, attempts, content_failures,"
        " parked_reason, created_at) VALUES ('distill', 'item:1', 'gone:1', %s, 1, 0, '', now())"
    )
    with breaking.taken_back():
        do(sql, NOW - timedelta(minutes=30))
        assert not look("leases", NOW)


def test_it_keeps_few_and_counts_all(house: None) -> None:
    with breaking.taken_back():
        broken = do("UPDATE memory_rawitem SET sha256 = 'x'")
        told = Look(NOW, 2)
        assert len(list(checks()["items"].look(told))) == 2
        assert (told.looked, told.beyond) == (broken, broken - 2)


def test_it_follows_what_is_true_at_the_moment_of_the_look(house: None) -> None:
    """What is not true yet, or not any more, is neither found nor missed by its words."""
    ids = there()
    later: datetime = NOW + timedelta(days=1)
    with breaking.taken_back():
        do("DELETE FROM memory_searchtext WHERE note_id = %s", ids["note"])
        do("UPDATE memory_note SET valid_from = %s WHERE id = %s", later, ids["note"])
        assert not look("texts", NOW) and len(look("texts", later)) == 1
