"""What is chosen for a purge, what goes with it, and purges that meet others at work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory import letgo, proof, rejected
from memory import purge as record
from memory.access import principal
from memory.errors import Conflict, RefusedError
from memory.models import (
    Act,
    CaptureReceipt,
    Centroid,
    Claim,
    Evidence,
    Feedback,
    GateRejection,
    Injection,
    ModelReply,
    Note,
    Principal,
    PurgeLedger,
    PurgeProof,
    RawItem,
    StageRun,
    Term,
)
from memory.searchtexts import index_notes
from memory.selection import RELEASABLE, Selection
from memory.stages.distill import distill
from memory.text.identity import sha256
from tests import factories
from tests.memory.books import DECIDED, count, two_sessions
from tests.memory.test_purge_function import words_kept

NOW = factories.at(days=9)


@pytest.fixture(autouse=True)
def _quick(local: Callable[..., None]) -> None:
    """Vectors made of words: nothing here is about meaning."""


def done(asked: Selection, by: Principal, **options: Any) -> record.Purged:
    plan = record.plan(asked, by=by)
    return record.purge(plan, by=by, reason="asked to", now=NOW, **options)


def parents(child: Note, *of: Note) -> None:
    """The child is made of these notes, and of nothing else."""
    for parent in of:
        Evidence.objects.create(
            note=child, parent=parent, quote=parent.content, sha256=sha256(parent.content)
        )


def derived(owner: Principal, content: str, *of: Note) -> Note:
    made: Note = Note.objects.create(
        id=__import__("uuid").uuid4(), owner=owner, title=content[:40], content=content, level="L1",
        unit_key=f"made of {len(of)}", content_key=content, valid_from=NOW, created_at=NOW,
    )  # fmt: skip
    parents(made, *of)
    return made


@pytest.mark.django_db
def test_it_knows_a_project_by_items_episodes_and_merges() -> None:
    alice = principal("alice")
    first, second = two_sessions()
    plan = record.plan(Selection(project="shop"), by=alice)
    wanted = {turn.raw_item_id for one in (first, second) for turn in one.turns.all()}
    assert set(plan.items) == wanted
    assert plan.counts["memory_rawitem"] == len(wanted) and count("memory_purgeledger") == 0


@pytest.mark.django_db
def test_it_takes_a_note_with_one_parent_and_leaves_one_with_another() -> None:
    alice = principal("alice")
    one = factories.note(alice, "The staging server listens on port 8443 since last Monday.")
    other = factories.note(alice, "The backup of the harbour database runs at three at night.")
    alone = derived(alice, "Staging has a port of its own.", one)
    grandchild = derived(alice, "Ports are taken care of.", alone)
    both = derived(alice, "Operations are described.", one, other)
    quoting = derived(alice, f"Both hold: {one.content} And the backup, too.", one, other)
    item = one.evidence.get().raw_item_id
    plan = record.plan(Selection(notes=(alone.pk,)), by=alice)
    assert plan.items == (item,), "what it was made of, by way of its parent"
    done(Selection(notes=(one.pk,)), alice)
    left = set(Note.objects.as_pipeline().values_list("pk", flat=True))
    assert left == {other.pk, both.pk}, "one that says its words goes, whatever else it is made of"
    assert list(both.evidence.values_list("parent", flat=True)) == [other.pk]
    assert not {grandchild.pk, quoting.pk} & left


@pytest.mark.django_db
def test_it_empties_what_must_stay_and_leaves_what_says_something_else() -> None:
    first, _ = two_sessions()
    alice, said = first.owner, DECIDED[2]
    note = factories.note(alice, "A note that stays, about the weather at the harbour.")
    asked = Injection.objects.create(owner=alice, mode="notes", outcome="hit", query=said,
                                     note_ids=[note.pk], options={
            "as_of": "2026-01-01", "known_at": "x", "read": {"server": "standby"}, "said": said,
        })  # fmt: skip
    odd = CaptureReceipt.objects.create(owner=alice, seen=1, stored=0, duplicates=0,
                                        refusals=said, session_end=[said])  # fmt: skip
    other = Injection.objects.create(owner=alice, mode="notes", outcome="hit", query="the vault?")
    # What somebody else said as well is theirs to keep, and no reason to keep Alice's.
    factories.turns(principal("bob"), [said], session="b")
    foreign = Injection.objects.create(
        owner=principal("bob"), mode="notes", outcome="hit", query=said
    )
    word = Feedback.objects.create(principal=alice, note=note, verdict="never", injection=asked,
                                   reason=f"it is as I said: {said}")  # fmt: skip
    done(Selection(session="s1"), alice)
    rows = {row.pk: row.query for row in Injection.objects.as_pipeline()}
    assert rows == {asked.pk: "", other.pk: "the vault?", foreign.pk: said}
    asked.refresh_from_db()
    assert set(asked.options) == {"as_of", "known_at", "read"}, "how it was asked, not what"
    odd.refresh_from_db()
    assert (odd.refusals, odd.session_end) == ([], {}), "whatever stood there"
    word.refresh_from_db()
    assert (word.verdict, word.reason, word.injection_id) == ("never", "", asked.pk)
    assert Note.objects.as_pipeline().filter(pk=note.pk).exists()


@pytest.mark.django_db
def test_every_table_that_it_releases_is_one_that_the_function_knows() -> None:
    plan = record.plan(Selection(raw=(factories.document(principal("alice"), "x y z").pk,)),
                       by=principal("alice"))  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'argus_purge'")
        source = cursor.fetchone()[0]
    known = {table for table in RELEASABLE if f"rows ? '{table}'" in source}
    assert set(RELEASABLE) - known == {"memory_note", "memory_gaterejection"}, "named above"
    nothing = {table: ["0"] for table in RELEASABLE if table != "memory_note"}
    counts = record._rehearse(record.Plan(**{**vars(plan), "rows": nothing}))
    assert counts["memory_rawitem"] == 1


@pytest.mark.django_db
def test_it_leaves_no_hash_of_a_word_that_nobody_says_any_more() -> None:
    alice = principal("alice")
    two_sessions()
    index_notes()
    assert Term.objects.filter(owner=alice).exists() and Centroid.objects.exists()
    done(Selection(owner="alice"), alice)
    for table in ("term", "posting", "searchtext", "centroid", "session", "episode", "note"):
        assert count(f"memory_{table}") == 0, table
    assert words_kept("Postgres") == []


@pytest.mark.django_db
def test_what_is_forbidden_is_not_learned_again() -> None:
    first, _ = two_sessions()
    alice = first.owner
    contents = list(
        Note.objects.as_pipeline().filter(episode=first).values_list("content", flat=True)
    )
    purged = done(Selection(session="s1"), alice, forbid=True)
    assert purged.forbidden == len(contents) > 0
    assert all(rejected.said(content, owner=alice) for content in contents)
    assert rejected.said(contents[0], owner=principal("bob")) is None
    factories.episode(alice, DECIDED, session="s7", start=factories.at(days=10))
    distill(clock=factories.clock(factories.at(days=11)))
    assert not Note.objects.as_pipeline().filter(session="s7", content__in=contents).exists()
    assert GateRejection.objects.as_pipeline().filter(owner=alice).exists()


@pytest.mark.django_db
def test_it_matches_what_stands_outside_of_raw_items() -> None:
    alice = principal("alice")
    Injection.objects.create(owner=alice, mode="notes", outcome="hit", query="where is xk-4711?")
    Injection.objects.create(
        owner=principal("bob"), mode="notes", outcome="hit", query="mine is xk-4711"
    )
    plan = record.plan(Selection(matching=r"xk-\d+"), by=alice)
    assert (plan.items, list(plan.rows)) == ((), ["memory_injection"])
    done(Selection(matching=r"xk-\d+"), alice)
    queries = Injection.objects.as_pipeline().order_by("pk").values_list("query", flat=True)
    assert list(queries) == ["", "mine is xk-4711"]


@pytest.mark.django_db
def test_a_pattern_that_finds_no_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    alice = principal("alice")
    factories.document(alice, "once upon a time " * 50_000)
    monkeypatch.setattr("memory.selection.MATCHING_SECONDS", 0.001)
    with pytest.raises(RefusedError, match="no end"):
        record.plan(Selection(matching=r"u.*t.*(.)\1x"), by=alice)


@pytest.mark.django_db
def test_nothing_is_no_purge() -> None:
    alice = principal("alice")
    plan = record.plan(Selection(owner="alice"), by=alice)
    assert plan.nothing
    with pytest.raises(RefusedError, match="nothing"):
        record.purge(plan, by=alice, reason="because", now=NOW)


def test_two_at_once_take_turns(clone_db: str) -> None:
    first, second = two_sessions()
    alice = first.owner
    plans = [record.plan(Selection(session=key), by=alice) for key in ("s1", "s2", "s1")]
    wrong: list[BaseException] = []

    def work(plan: record.Plan) -> None:
        try:
            record.purge(plan, by=alice, reason="asked", now=timezone.now())
        except BaseException as error:
            wrong.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [type(one) for one in wrong] == [Conflict] and count("memory_rawitem") == 0
    assert PurgeLedger.objects.count() == PurgeProof.objects.count() == 2, "each once"
    assert second.session == "s2"


def test_it_waits_for_a_worker_that_ends_and_takes_along_what_it_made(clone_db: str) -> None:
    alice = principal("alice")
    item = factories.document(alice, "The harbour master keeps the tide tables in the drawer.")
    unit = f"item:{item.pk}"
    plan = record.plan(Selection(raw=(item.pk,)), by=alice)
    claim = Claim.objects.create(stage="distill", unit=unit)
    begun, go = threading.Event(), threading.Event()

    def worker() -> None:
        try:
            with transaction.atomic():
                factories.note(alice, item.body, evidence=item, unit_key=unit)
                claim.delete()
                begun.set()
                go.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=worker)
    thread.start()
    assert begun.wait(30)
    threading.Timer(0.5, go.set).start()
    purged = record.purge(plan, by=alice, reason="asked", now=timezone.now())
    thread.join(30)
    assert purged.counts["memory_note"] == 1 and count("memory_note") == 0


def test_it_gives_way_when_a_row_stays_in_hand(
    clone_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "LOCK_SECONDS", 0.2)
    monkeypatch.setattr(record, "TRIES_MAX", 2)
    alice = principal("alice")
    item = factories.turns(alice, ["The harbour master keeps the tide tables here."])[0]
    plan = record.plan(Selection(raw=(item.pk,)), by=alice)
    begun, go = threading.Event(), threading.Event()

    def holder() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(hashtext('argus_purge'))")
                begun.set()
                go.wait(30)
        finally:
            connection.close()

    thread = threading.Thread(target=holder)
    thread.start()
    assert begun.wait(30)
    today = timezone.now().date()
    for at_work in (
        lambda: record.purge(plan, by=alice, reason="asked", now=timezone.now()),
        lambda: record.plan(Selection(raw=(item.pk,)), by=alice),
        lambda: letgo.look_at("injection", today, now=timezone.now()),
        lambda: letgo.let_go("injection", today, by=alice, reason="old", now=timezone.now()),
    ):
        with pytest.raises(Conflict, match="try again"):
            at_work()
    go.set()
    thread.join(30)
    assert count("memory_purgeledger") == 0 and count("memory_rawitem") == 1


@pytest.mark.django_db
def test_it_leaves_nothing_of_more_words_than_are_quick_to_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a sample stood for the words, eight of them stayed in what people asked."""
    monkeypatch.setattr("memory.text.passages.QUICK_MAX", 500)
    alice = principal("alice")
    factories.turns(alice, [" ".join(f"w{n}q{k}" for k in range(100)) for n in range(20)])
    factories.turns(alice, [" ".join(f"w3q{k}" for k in range(40, 50))], session="s2")
    asked = [
        Injection.objects.create(
            owner=alice, mode="prompt", outcome="hit",
            query=" ".join(f"w{n}q{k}" for k in range(20, 28)),
        )
        for n in range(20)
    ]  # fmt: skip
    plan = record.plan(Selection(session="s1"), by=alice)
    assert (len(plan.everything.windows), len(plan.words.windows)) == (20 * 93, 20 * 93 - 3)
    purged = record.purge(plan, by=alice, reason="asked to", now=NOW)
    assert purged.counts["memory_injection (emptied)"] == len(asked)
    shown = proof.prove(PurgeLedger.objects.get(), plan.everything, now=NOW).row
    assert [(one["place"], one["by_right"]) for one in shown.elsewhere] == [(proof.RECORD, True)]
    assert shown.scanned["windows"] == len(shown.shingles) == 20 * 93 and proof.whole(shown)


@pytest.mark.django_db
def test_it_empties_what_an_earlier_purge_was_for_and_what_a_run_reported() -> None:
    alice = principal("alice")
    other, item = factories.turns(alice, [DECIDED[0], DECIDED[2]])
    before = done(Selection(raw=(other.pk,)), alice)
    with connection.cursor() as cursor:
        # What was no word of a purge when it was given for a reason.
        cursor.execute("SELECT argus_purge('{}', 'alice', %s)", [f"unlike {DECIDED[2]}"])
    told = {"found": {"quote": 2}, "left": 3, "stopped": "budget", "sampled": ["item:4"],
            "after": "episode:0a1b", "troubles": [f"x: {DECIDED[2]}", "hunter2"],
            DECIDED[2]: 1}  # fmt: skip
    run = StageRun.objects.create(stage="reconcile", status="done", report=told)
    purged = done(Selection(raw=(item.pk,)), alice)
    run.refresh_from_db()
    kept = {**told, "troubles": ["", ""]}
    kept.pop(DECIDED[2])
    assert run.report == kept, "what others go by stays"
    reasons = list(PurgeLedger.objects.order_by("pk").values_list("reason", flat=True))
    assert reasons == ["asked to", "[emptied]", "asked to"] and before.ledger < purged.ledger
    assert purged.counts["memory_purgeledger (emptied)"] == 1
    assert words_kept(DECIDED[2]) == []


@pytest.mark.django_db
def test_it_knows_a_reply_by_any_of_its_units_whatever_stands_there() -> None:
    first, second = two_sessions()
    told: tuple[Any, ...] = (
        ["item:0", first.unit_key], [second.unit_key], {"odd": first.unit_key}, "x", [], [None, 7],
    )  # fmt: skip
    for n, units in enumerate(told):
        ModelReply.objects.create(
            port="distill", model="m", prompt_version="1", input_sha256=str(n), model_real="m",
            reply=b"x", units=units,
        )  # fmt: skip
    done(Selection(session="s1"), first.owner)
    left = ModelReply.objects.filter(port="distill", model="m").order_by("pk")
    assert list(left.values_list("units", flat=True)) == list(told[1:])
    with connection.cursor() as cursor:
        # A plan for whatever arrays come would hold each row against each name, for minutes.
        cursor.execute("SELECT proname, proconfig FROM pg_proc WHERE proname LIKE 'argus_purge%'")
        set_ = dict(cursor.fetchall())
    assert set(set_) == {"argus_purge", "argus_purge_reach"}
    assert all("plan_cache_mode=force_custom_plan" in one for one in set_.values())


def test_killed_in_the_middle_it_did_nothing(
    clone_db: str, clone_environment: dict[str, str]
) -> None:
    first, _ = two_sessions()
    before = count("memory_note")
    script = (
        "import django, time, sys; django.setup()\n"
        "from django.db import transaction\n"
        "from django.utils import timezone\n"
        "from memory import purge\n"
        "from memory.access import principal\n"
        "from memory.selection import Selection\n"
        "me = principal('alice')\n"
        "plan = purge.plan(Selection(session='s1'), by=me)\n"
        "with transaction.atomic():\n"
        "    purge.purge(plan, by=me, reason='asked', now=timezone.now())\n"
        "    print('gone', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], env=clone_environment,
                               stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout is not None and process.stdout.readline().strip() == "gone"
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            if cursor.fetchone() == (0,):
                break
        time.sleep(0.05)
    assert (count("memory_note"), count("memory_purgeledger")) == (before, 0)
    done(Selection(session="s1"), first.owner)
    assert not Act.objects.filter(verb="purge").exclude(reason="asked to").exists()
    assert not RawItem.objects.as_pipeline().filter(session="s1").exists()
