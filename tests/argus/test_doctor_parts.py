"""Each fault of work, models, doors and machine that the doctor promises to find: made, found."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from argus import schedules, scratch
from argus.board import _seen
from argus.doctor import examine, exit_code
from argus.doctoring import database, ground, models, people, row, work
from argus.doctoring.row import Hangs, Row, careful, within
from argus.owner import as_owner
from memory import findings
from memory.access import create_key, principal
from memory.acts import record_act
from memory.health import health
from memory.measures import measured
from memory.models import (
    AccessKey,
    Act,
    CaptureReceipt,
    Claim,
    Cooldown,
    Finding,
    Injection,
    LlmCall,
    Principal,
    PurgeProof,
    StageRun,
    TokenDay,
)
from memory.spending import lift
from tests import factories as make
from tests.cluster import owner_address
from tests.llm.conftest import configure, server
from tests.memory.books import fill, purge
from tests.openai_server import CHAT, RERANK, OpenAIServer, fails, says

__all__ = ["configure", "server"]

Configure = Callable[..., None]


def told(part: row.Part) -> list[tuple[str, str]]:
    """(state, sentence) of each row; every one that is not ok says what helps."""
    rows = careful("part", part)
    assert all(one.fix for one in rows if one.state != "ok"), rows
    return [(one.state, one.what) for one in rows]


def states(part: row.Part) -> list[str]:
    return [state for state, _ in told(part)]


# Work.


@pytest.mark.django_db
def test_it_tells_a_worker_that_lives_from_one_that_is_away_or_never_was() -> None:
    now = timezone.now()
    assert told(work.worker) == [("warn", "No worker was ever seen: what is captured waits.")]
    StageRun.objects.create(stage="distill", status="done", trigger_source="command")
    assert states(work.worker) == ["warn"], "a command is no worker"
    run = StageRun.objects.create(stage="distill", status="done", trigger_source="schedule")
    schedules.sync()
    assert states(work.worker) == ["ok"]
    Schedule.objects.update(next_run=now - timedelta(hours=2))
    assert states(work.worker) == ["fail"], "it is due, and nobody comes"
    Schedule.objects.update(next_run=now)
    StageRun.objects.filter(pk=run.pk).update(heartbeat_at=now - timedelta(hours=3))
    [found] = work.worker()
    assert (
        found.state == "fail"
        and found.away
        and found.what.startswith("No worker did anything for 3")
    )
    assert exit_code([found]) == 75


@pytest.mark.django_db
def test_a_worker_that_a_backup_brought_along_does_not_live_here() -> None:
    now = timezone.now()
    run = StageRun.objects.create(stage="distill", status="done", trigger_source="schedule")
    schedules.sync()
    assert states(work.worker) == ["ok"]
    at = run.heartbeat_at + timedelta(seconds=1)
    record_act(principal("alice"), "restore", "database", now=at)
    assert told(work.worker) == [("warn", "No worker was ever seen: what is captured waits.")]
    cache.clear()
    assert measured(now, ["distill"]).alive_at is None
    assert _seen(health(now, ["distill"]).runs) is None, "nor does the board see it"
    StageRun.objects.filter(pk=run.pk).update(heartbeat_at=now + timedelta(minutes=1))
    assert states(work.worker) == ["ok"], "it was alive after that"


@pytest.mark.django_db
def test_it_finds_schedules_that_are_not_as_the_settings_say() -> None:
    assert "process is missing" in told(work.of_schedules)[0][1]
    schedules.sync()
    assert states(work.of_schedules) == ["ok"]
    Schedule.objects.filter(name="process").update(minutes=999)
    Schedule.objects.filter(name="track").update(repeats=0)
    Schedule.objects.create(name="old", func="memory.tasks.gone", schedule_type=Schedule.DAILY)
    [(state, what)] = told(work.of_schedules)
    assert state == "warn" and "process is another" in what and "track is another" in what
    assert "old is in no settings" in what


@pytest.mark.django_db
def test_it_finds_a_queue_that_would_lose_work_or_does_not_move(settings: Any) -> None:
    assert states(work.queue) == ["ok"]
    OrmQ.objects.create(key="argus", payload="x", lock=timezone.now() - timedelta(hours=1))
    assert "the oldest for 1 h" in told(work.queue)[0][1]
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "retry": 1, "catch_up": True}
    assert states(work.queue)[:2] == ["fail", "fail"]


@pytest.mark.django_db
def test_it_finds_what_was_set_aside_and_what_verify_found() -> None:
    now = timezone.now()
    assert states(work.aside) == ["ok"] and states(work.found) == ["ok"]
    Claim.objects.create(stage="distill", unit="x", parked_at=now)
    assert told(work.aside) == [("warn", "Units are set aside: distill 1.")]

    def ran(stage: str, days: float, **found: int) -> None:
        run = StageRun.objects.create(
            stage=stage, started_at=now - timedelta(days=days), report={"found": found}
        )
        at = now - timedelta(days=days)
        StageRun.objects.filter(pk=run.pk).update(status="done", finished_at=at)

    ran("verify", 9, quotes=0)
    assert told(work.found)[0][0] == "warn", "that was long ago"
    ran("verify", 1, quotes=2, indexes=0)
    ran("reconcile", 1, again=3)
    [(state, what), (second, _)] = told(work.found)
    assert (state, second) == ("fail", "warn") and "quotes 2" in what and "indexes" not in what
    ran("verify", 0.5, quotes=0)
    assert told(work.found)[0][0] == "ok"


@pytest.mark.django_db
def test_its_advice_leads_to_what_is_anothers(configure: Configure) -> None:
    """Nobody's list shows what is a stranger's."""
    configure(principal="alice")
    now, alice, bob = timezone.now(), principal("alice"), principal("bob o")

    def fix(part: row.Part, name: str) -> str:
        return next(one.fix for one in careful("part", part) if one.name == name)

    def aside(owner: Principal) -> str:
        item = make.document(owner, f"What {owner.name} said.")
        Claim.objects.create(stage="distill", unit=f"item:{item.pk}", parked_at=now)
        return fix(work.aside, "parked")

    theirs = "ARGUS_PRINCIPAL='bob o' manage.py parked list"
    page = "or /ui/parked/ with `See all owners`."
    assert aside(bob) == f"See why: {theirs}, {page}"
    assert aside(alice) == f"See why: manage.py parked list, {theirs}, {page}"
    Claim.objects.all().delete()
    assert aside(alice) == "See why: manage.py parked list, or /ui/parked/."
    Claim.objects.all().delete()
    Claim.objects.create(stage="distill", unit="x", parked_at=now)
    assert fix(work.aside, "parked") == "See why: /ui/parked/ with `See all owners`."
    run = StageRun.objects.create(stage="verify", report={"found": {"quotes": 1}})
    StageRun.objects.filter(pk=run.pk).update(status="done", finished_at=now)
    Finding.objects.create(run=run, owner=alice, check_name="quotes", kind="x", reference="x")
    assert "/ui/findings/. " in fix(work.found, "verify")
    Finding.objects.create(run=run, owner=bob, check_name="quotes", kind="x", reference="y")
    assert f"/ui/findings/{work.ALL_OWNERS}, as some are of bob o. " in fix(work.found, "verify")
    numbers = [
        purge([make.document(principal(name), f"Said by {name}.").pk], actor=name)["ledger"]
        for name in ("alice", "bob o")
    ]
    for number in numbers:
        PurgeProof.objects.create(ledger_id=number, proved=True, files_pending=True)
    assert fix(work.found, "purges") == (
        f"See where: manage.py purge --finish {numbers[0]}, ARGUS_PRINCIPAL='bob o' manage.py purge"
        f" --finish {numbers[1]}, or /ui/purge/ with `See all owners`."
    )


@pytest.mark.django_db
def test_it_counts_those_whom_it_does_not_name(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(principal="alice")
    monkeypatch.setattr(work, "NAMED_MAX", 1)
    now, numbers = timezone.now(), []
    for name in ("alice", "bob", "carol"):
        owner = principal(name)
        item = make.document(owner, f"What {name} said.")
        Claim.objects.create(stage="distill", unit=f"item:{item.pk}", parked_at=now)
        numbers.append(purge([make.document(owner, f"Of {name}.").pk], actor=name)["ledger"])
        PurgeProof.objects.create(ledger_id=numbers[-1], proved=True, files_pending=True)
    (aside,) = careful("parked", work.aside)
    page = "or /ui/parked/ with `See all owners`."
    assert aside.fix == f"See why: manage.py parked list and 2 more, {page}"
    purges = next(one for one in careful("found", work.found) if one.name == "purges")
    page = "or /ui/purge/ with `See all owners`."
    assert purges.fix == f"See where: manage.py purge --finish {numbers[0]} and 2 more, {page}"
    monkeypatch.setattr(work, "UNITS_LOOKED_AT", 1)
    (aside,) = careful("parked", work.aside)
    assert aside.fix == "See why: manage.py parked list, or /ui/parked/ with `See all owners`."


def test_it_tells_a_record_that_was_never_verified_or_never_whole() -> None:
    now = timezone.now()
    assert work.judge_verified(None, None, now).state == "ok", "there is nothing to look at"
    assert work.judge_verified(None, now - timedelta(days=1), now).state == "ok"
    old = work.judge_verified(None, now - timedelta(days=9), now)
    assert old.state == "warn" and "never verified, and is 9 d old" in old.what
    last = findings.Last(1, now - timedelta(hours=1), {"items": 0}, left=("purges",))
    assert "no time for purges" in work.judge_verified(last, None, now).what


def test_it_names_copies_of_the_record_that_a_killed_process_left(clone_db: str) -> None:
    assert states(work.copies) == ["ok"]
    name = f"{scratch._prefix(clone_db_name())}{'0' * 12}"
    with scratch.connected(scratch.owner_of(dict(connection.settings_dict))) as keeper:
        scratch._create(keeper, name)
        try:
            lock = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"
            keeper.execute(lock, [name])
            assert states(work.copies) == ["ok"], "somebody is in it"
            keeper.execute("SELECT pg_advisory_unlock_all()")
            assert told(work.copies) == [("warn", f"A killed process left copies: {name}.")]
        finally:
            scratch.drop(keeper, name)


def clone_db_name() -> str:
    return str(connection.settings_dict["NAME"])


@pytest.mark.django_db
def test_it_finds_purges_that_are_not_done_and_backups_that_are_old() -> None:
    fill()
    assert len(told(work.found)) == 1
    proof = PurgeProof.objects.latest("pk")
    hit = {"place": "memory_act", "column": "reason", "ids": ["1"], "count": 1}
    PurgeProof.objects.create(ledger=proof.ledger, proved=True, files_pending=True)
    number = proof.ledger_id
    what = f"Purge {number} left files to do, or words that stand somewhere without right."
    assert f"manage.py purge --finish {number}, " in careful("found", work.found)[1].fix
    assert told(work.found)[1] == ("fail", what)
    by_right = {**hit, "by_right": True}
    PurgeProof.objects.create(ledger=proof.ledger, proved=False, elsewhere=[by_right])
    assert len(told(work.found)) == 1, "somebody says the same: nothing is to be done"
    wrong = {**hit, "by_right": False}
    PurgeProof.objects.create(ledger=proof.ledger, proved=False, elsewhere=[by_right, wrong])
    assert told(work.found)[1] == ("fail", what)
    PurgeProof.objects.create(ledger=proof.ledger, proved=False)
    assert len(told(work.found)) == 1, "texts too short to be looked for stay so"
    assert states(work.backups) == ["ok"], "nobody must save by Argus"
    act = {"principal": principal("alice"), "verb": "back_up", "kind": "database"}
    Act.objects.create(**act, created_at=timezone.now() - timedelta(days=30))
    assert told(work.backups)[0][0] == "warn"
    Act.objects.create(**act)
    assert states(work.backups) == ["ok"]


def test_a_worker_that_just_began_is_connected(clone_db: str) -> None:
    assert states(work.worker) == ["warn"]
    with psycopg.connect(clone_db, application_name=work.WORKER_PROGRAM):
        assert told(work.worker) == [("ok", "one is connected, and did nothing yet")]
        schedules.sync()
        Schedule.objects.update(next_run=timezone.now() - timedelta(hours=2))
        run = StageRun.objects.create(stage="embed", status="done", trigger_source="schedule")
        at = timezone.now() - timedelta(hours=3)
        StageRun.objects.filter(pk=run.pk).update(heartbeat_at=at)
        [found] = work.worker()
        assert found.state == "fail" and "see its log" in found.fix, "it is there and does nothing"


# Models. Those behind a URL leave rows by transactions of their own: a clone each.


def test_it_says_which_model_answered_and_finds_those_that_do_not(
    clone_db: str, server: OpenAIServer, configure: Configure
) -> None:
    configure(rerank_url=server.url, rerank_model="r", judge_model="other")
    (state, what), (_, judge) = told(models.chat)
    assert state == "ok" and f"scripted at {server.url}: scripted-2026-01 answered" in what
    assert judge.startswith("other at"), "the judge's model is asked as well"
    assert LlmCall.objects.filter(stage="doctor", port="greeting", outcome="ok").count() == 2
    assert states(models.reranker) == ["ok"]
    configure(judge_model=None)

    server.script(
        CHAT, fails(400, '{"error": {"message": "use max_completion_tokens, not max_tokens"}}')
    )
    assert states(models.chat) == ["ok"], "it learns the server's dialect"
    server.script(CHAT, says("", finish_reason="length"))
    assert states(models.chat) == ["ok"], "a model that thinks first answers all the same"
    server.script(CHAT, fails(503))
    [found] = models.chat()
    assert (found.state, found.away) == ("fail", True) and "does not answer" in found.what
    assert not Cooldown.objects.exists(), "no worker waits because the doctor asked"
    server.script(CHAT, fails(401))
    assert "ARGUS_MODEL_KEY" in next(iter(models.chat())).fix
    server.script(RERANK, fails(500))
    assert states(models.reranker) == ["warn"]
    configure(model_url="http://127.0.0.1:9/v1", embed_url="http://127.0.0.1:9/v1")
    assert states(models.chat) == ["fail"] and states(models.embedder) == ["fail"]
    configure(tokens_per_day=5)
    assert told(models.chat)[0][0] == "warn" and "was not asked" in told(models.chat)[0][1]


@pytest.mark.django_db
def test_it_says_when_the_budget_stops_the_work(configure: Configure) -> None:
    configure(tokens_per_day=100_000)
    assert told(models.budget) == [("ok", "0 of 100,000 tokens spent today")]
    day = TokenDay.objects.create(day=timezone.now().date(), tokens=90_000)
    assert states(models.budget) == ["warn"]
    TokenDay.objects.filter(pk=day.pk).update(tokens=100_000)
    [found] = models.budget()
    assert found.what == "Background work is stopped: 100,000 of 100,000 tokens spent today."
    assert "budget --lift" in found.fix
    lift(100_000, by=principal("alice"), reason="x", now=timezone.now())
    assert states(models.budget) == ["ok"]
    configure(tokens_per_day=4_000)
    assert "no room for one large unit" in told(models.budget)[0][1]
    configure(tokens_per_day=0)
    assert states(models.budget) == ["warn"]
    configure(model_url=None, embedder="minilm")
    assert states(models.budget) == ["ok"]


# Doors.


@pytest.mark.django_db
def test_it_finds_keys_that_open_nothing_or_that_nobody_uses() -> None:
    assert states(people.keys) == ["ok"], "nobody was wired yet"
    assert "createkey" in told(people.keys)[0][1]
    _, reads = create_key(owner="alice", scopes=["recall"])
    assert told(people.keys) == [("warn", "No key may capture: hooks have no way in.")]
    AccessKey.objects.filter(pk=reads.pk).delete()
    create_key(owner="alice", scopes=["capture", "recall"])
    assert told(people.keys) == [("ok", "1 in force")]
    _, bare = create_key(owner="alice", scopes=["recall"])
    _, old = create_key(owner="alice", scopes=["recall"])
    _, idle = create_key(owner="alice", scopes=["recall"])
    long_ago = timezone.now() - timedelta(days=400)
    AccessKey.objects.filter(pk=bare.pk).update(scopes=[])
    AccessKey.objects.filter(pk__in=[old.pk, idle.pk]).update(created_at=long_ago)
    AccessKey.objects.filter(pk=idle.pk).update(last_used_at=long_ago)
    assert told(people.keys) == [
        ("fail", f"Keys without a scope: {bare.prefix}."),
        ("warn", f"Never used in 30 days: {old.prefix}."),
        ("warn", f"Not used for 180 days: {idle.prefix}."),
    ]
    AccessKey.objects.filter(pk__in=[bare.pk, old.pk, idle.pk]).update(revoked_at=timezone.now())
    assert states(people.keys) == ["ok"]


@pytest.mark.django_db
def test_it_says_when_a_hook_was_heard_of_last() -> None:
    alice, now = principal("alice"), timezone.now()
    assert states(people.hooks) == ["ok"], "none was ever installed"
    assert "/hook/ installs one" in told(people.hooks)[0][1]
    _, key = create_key(owner="alice", scopes=["capture", "recall"])
    _, its = create_key(owner="alice", scopes=["capture", "recall"], parent=key)
    assert told(people.hooks) == [("warn", "A hook was given a key and was never heard of.")]
    Injection.objects.create(owner=alice, mode="prompt", outcome="no_hits", created_at=now)
    assert "never heard of" in told(people.hooks)[0][1], "a command asked: no key was used"
    AccessKey.objects.filter(pk=its.pk).update(last_used_at=now)
    assert "capture nothing" in told(people.hooks)[0][1]
    post: dict[str, Any] = {"owner": alice, "seen": 1, "stored": 1, "duplicates": 0}
    CaptureReceipt.objects.create(**post, created_at=now)
    assert states(people.hooks) == ["warn"], "that was no hook"
    CaptureReceipt.objects.create(**post, client={"machine": "m"}, created_at=now)
    assert states(people.hooks) == ["ok"]


@pytest.mark.django_db
def test_it_says_for_how_long_no_hook_was_heard_of() -> None:
    CaptureReceipt.objects.create(
        owner=principal("alice"), seen=1, stored=1, duplicates=0, client={"machine": "m"},
        created_at=timezone.now() - timedelta(days=3),
    )  # fmt: skip
    assert "was heard of for 3 d" in told(people.hooks)[0][1]


# The machine and the database.


@pytest.mark.parametrize(("free", "state"), [(1, "fail"), (10**9, "warn"), (10**12, "ok")])
def test_it_finds_a_disk_that_is_full(free: int, state: str) -> None:
    found = ground.judge_free("home", Path("/home"), free)
    assert found.state == state and "home" in found.what


def test_it_looks_at_each_disk_once() -> None:
    rows = list(ground.disks())
    assert rows and len({one.what for one in rows}) == len(rows)


@pytest.mark.parametrize(
    ("skew", "doubt", "state"),
    [(0.1, 0.0, "ok"), (5, 4, "ok"), (-5, 1, "warn"), (90, 1, "fail"), (-3600, 9, "fail")],
)
def test_it_finds_clocks_that_differ(skew: float, doubt: float, state: str) -> None:
    assert database.judge_clocks(skew, doubt).state == state


@pytest.mark.django_db
def test_it_compares_the_clocks() -> None:
    assert told(database.clock)[0][0] == "ok", "one machine, one clock"


def test_it_finds_a_vault_that_cannot_be_written(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, leads in (("loop", "loop"), ("gone", "nowhere")):
        (tmp_path / name).symlink_to(tmp_path / leads)
    places = {"new/vault": "ok", "file/v": "fail", "loop": "fail", "loop/v": "fail", "gone": "fail"}
    before = sorted(tmp_path.iterdir())
    for place, state in places.items():
        settings.ARGUS = django_settings.ARGUS.model_copy(update={"vault": tmp_path / place})
        assert states(ground.vault) == [state], place
        assert told(ground.disks)
    assert sorted(tmp_path.iterdir()) == before, "nothing is left behind"


def test_it_finds_a_role_that_may_rewrite_the_record(clone_db: str) -> None:
    assert states(database.grants) == ["ok"]
    role = django_settings.ARGUS_APP_ROLE
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(f"GRANT DELETE ON memory_rawitem TO {role}")
    [(state, what)] = told(database.grants)
    assert state == "fail" and "memory_rawitem" in what and role in what


def test_no_question_hangs(clone_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row, "ANSWER_SECONDS", 1)
    started = time.monotonic()
    with psycopg.connect(owner_address(clone_db)) as holder:
        holder.execute("LOCK TABLE memory_accesskey")
        rows = examine()
    stuck = [one for one in rows if one.state == "fail"]
    assert [one.name for one in stuck] == ["keys", "hook"] and all(one.away for one in stuck)
    assert {"embedder", "worker", "disk"} <= {one.name for one in rows}, "the others are told"
    assert time.monotonic() - started < 20
    with pytest.raises(Hangs, match="within 0.1 s"):
        within(0.1, lambda: time.sleep(3))
    with pytest.raises(FileNotFoundError):
        within(5, lambda: Path("/nowhere/at/all").stat())


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    held.append(listening.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield int(listening.getsockname()[1])
        listening.shutdown(socket.SHUT_RDWR)
        for one in held:
            one.close()


def test_a_server_that_never_answers_is_away(
    clone_db: str, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row, "CONNECT_SECONDS", 2)
    connection.close()
    before = connection.settings_dict
    connection.settings_dict = {**before, "HOST": "127.0.0.1", "PORT": str(silent_port)}
    try:
        rows = examine()
    finally:
        connection.settings_dict = before
    failed = [one for one in rows if one.state == "fail"]
    assert [(one.name, one.away) for one in failed] == [("database", True)]
    assert "ARGUS_DATABASE_URL" in failed[0].fix


def test_strict_fails_by_what_should_be_looked_at(clone_db: str) -> None:
    look = [Row("a", "ok", ""), Row("b", "warn", "")]
    assert (exit_code(look), exit_code(look, strict=True)) == (0, 1)
    out = StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("doctor", "--strict", stdout=out)
    assert left.value.code == 1 and "to look at, 0 wrong" in out.getvalue().splitlines()[-1]
