"""The stage and the command: what a person, a cron job and the board get from a look.

How: one small house, whole at first; what is broken is broken by the server's superuser.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from memory import findings
from memory.audit import open_run
from memory.errors import NotFound
from memory.findings import Found
from memory.management.commands import verify as command_of_verify
from memory.models import Act, Finding, Note, RawItem, StageRun
from memory.pipeline import process
from memory.retire import retire
from memory.stages import verify as stage
from memory.stages.embed import embed
from memory.stages.verify import verify
from memory.tasks import run_verify
from memory.verifying import check, offered
from memory.verifying.check import Check, Look
from memory.verifying.offered import checks
from tests import factories
from tests.memory import breaking
from tests.memory.books import DECIDED, purge


@pytest.fixture
def house(clone_db: str, local: Callable[..., None]) -> Iterator[Note]:
    """Alice's house with a few notes; one of them."""
    alice = factories.three()[0]
    yield [factories.note(alice, f"The number {n} bus stops at the harbour.") for n in range(5)][0]


def spoil(items: int) -> None:
    with breaking.superuser(), transaction.atomic():
        breaking.do("SET LOCAL session_replication_role = replica")
        breaking.do(
            "UPDATE memory_rawitem SET body = body || '!' WHERE id IN"
            " (SELECT id FROM memory_rawitem ORDER BY id LIMIT %s)",
            items,
        )


def rows(run: StageRun | None = None) -> list[Finding]:
    found = Finding.objects.as_pipeline().order_by("pk")
    return list(found.filter(run=run) if run else found)


def command(*arguments: str, capsys: Any) -> tuple[int, str]:
    """The exit code and what was printed."""
    code = 0
    try:
        call_command("verify", *arguments)
    except SystemExit as end:
        code = int(str(end.code))
    return code, str(capsys.readouterr().out)


def test_it_tells_finds_keeps_and_repairs_nothing(house: Note, capsys: Any) -> None:
    """One house: whole, then broken; by the stage, the command, `--json`, the task and the row."""
    report = verify(clock=factories.clock(factories.at(days=1)))
    assert report.findings == 0 and not rows()
    assert set(report.found) == set(report.looked) == set(report.milliseconds) == set(checks())
    assert report.looked["items"] == 5
    assert command(capsys=capsys)[0] == 0

    spoil(3)
    before = list(RawItem.objects.as_pipeline().order_by("pk").values())
    code, out = command("--check", "items", "--check", "quotes", capsys=capsys)
    assert code == 1 and "3 findings" in out and "/ui/items/" in out
    run = StageRun.objects.latest("pk")
    assert (run.stage, run.status, run.report["found"]) == (
        "verify",
        "done",
        {"items": 3, "quotes": 0},
    )
    assert {(one.check_name, one.kind, one.owner_id) for one in rows(run)} == {
        ("items", "item", house.owner_id)
    }
    assert list(RawItem.objects.as_pipeline().order_by("pk").values()) == before, (
        "it repairs nothing"
    )
    assert not Act.objects.exists()

    code, out = command("--json", "--limit", "2", "--check", "items", capsys=capsys)
    told = json.loads(out)
    assert code == 1 and told["findings"] == 3 and told["unwritten"] == 1
    assert len(told["rows"]) == 2 == Finding.objects.as_pipeline().filter(run=told["run"]).count()
    assert told["rows"][0]["page"] == f"/ui/items/{told['rows'][0]['reference']}/"
    words = json.dumps(told) + json.dumps([one.detail for one in rows()])
    assert "harbour" not in words, "no text of the record is kept where a purge finds it not"

    assert run_verify()["findings"] == 3
    last = findings.last("verify")
    assert last and (last.total, last.counts["items"], last.counts["quotes"]) == (3, 3, 0)
    assert findings.last("reconcile") is None
    with pytest.raises(DatabaseError), transaction.atomic():
        breaking.do("DELETE FROM memory_finding")
    with pytest.raises(DatabaseError), transaction.atomic():
        breaking.do("UPDATE memory_finding SET detail = '{}'")


def test_what_is_being_written_while_it_looks_is_no_finding(
    clone_db: str, local: Callable[..., None]
) -> None:
    """A worker distills, indexes, judges, retires and purges; verify looks all the time."""
    alice = factories.three()[0]
    ended = threading.Event()
    broke: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(3):
                day = factories.at(days=number)
                closed = factories.episode(
                    alice, [*DECIDED, f"Remember that we decided on port 84{number} for staging."],
                    session=f"s{number}", start=day,
                )  # fmt: skip
                process(clock=factories.clock(factories.at(hours=5, days=number)))
                some = Note.objects.as_pipeline().filter(deleted_at=None).order_by("pk")[:2]
                retire([one.pk for one in some], reason="wrong", now=factories.at(days=number + 1))
                if number % 2:
                    purge([closed.first_item_id])
        except BaseException as error:
            broke.append(error)
        finally:
            connection.close()
            ended.set()

    worker = threading.Thread(target=work)
    worker.start()
    looks = 0
    # The leases of the worker, whose clock stands weeks before ours, ended for us long ago.
    names = [name for name in checks() if name != "leases"]
    while not ended.wait(0.01):
        run = stage.ask(names, trigger="test", now=factories.at(days=40))
        report = verify(run=run, clock=factories.clock(factories.at(days=40)))
        assert report.findings == 0, [(one.check_name, one.kind, one.detail) for one in rows()]
        looks += 1
    worker.join()
    assert not broke and looks > 3
    assert Note.objects.as_pipeline().exclude(retired_reason="").exists()
    embed(clock=factories.clock(factories.at(days=41)))
    assert verify(clock=factories.clock(factories.at(days=60))).findings == 0


@pytest.mark.django_db
def test_it_looks_at_what_it_was_asked_for_and_knows_no_other_name(capsys: Any) -> None:
    now = factories.at()
    with pytest.raises(NotFound, match="there are items, quotes"):
        stage.ask(["nonsense"], trigger="command", now=now)
    assert not StageRun.objects.exists()
    with pytest.raises(CommandError):
        call_command("verify", "--check", "nonsense")
    code, out = command("--dry-run", capsys=capsys)
    assert code == 0 and "every quote is the span" in out and not StageRun.objects.exists()


def test_it_leaves_checks_when_its_time_is_over_or_somebody_says_stop(house: Note) -> None:
    now = factories.at()
    report = verify(clock=factories.clock(now), until=now)
    assert set(report.left) == set(checks()) and not report.found
    run = open_run("verify", trigger="command", now=now)
    StageRun.objects.filter(pk=run.pk).update(cancel_asked_at=now)
    assert set(verify(run=run, clock=factories.clock(now)).left) == set(checks())
    assert StageRun.objects.get(pk=run.pk).status == "cancelled"
    assert findings.last("verify") is None, "who looked at nothing says nothing"


@pytest.mark.django_db
def test_what_a_run_had_no_time_for_is_told_by_the_run_before_and_comes_first_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ran(day: int, found: dict[str, int], left: list[str], **progress: Any) -> StageRun:
        report = {"found": found, "left": left}
        run: StageRun = StageRun.objects.create(
            stage="verify", status="done", report=report, progress=progress,
            started_at=factories.at(days=day), finished_at=factories.at(days=day),
        )  # fmt: skip
        return run

    ran(0, {"one": 5, "two": 5}, [])
    whole = ran(1, {"one": 2, "two": 1}, [])
    cut = ran(2, {"one": 0}, ["two", "three"])
    last = findings.last("verify")
    assert last and last.counts == {"one": 0, "two": 1}, "the other look at two still holds"
    assert (last.run, last.at, last.left) == (cut.pk, factories.at(days=1), ("three",))
    for run, name in ((whole, "one"), (whole, "two"), (cut, "one")):
        Finding.objects.create(run=run, check_name=name, kind="item", reference="1")
    stands = Finding.objects.as_pipeline().filter(findings.standing("verify"))
    assert set(stands.values_list("run", "check_name")) == {(cut.pk, "one"), (whole.pk, "two")}
    ran(3, {"two": 0}, [], checks=["two"])
    assert findings.last("verify") == last, "nobody looked at all the rest"

    looked: list[str] = []

    def looks(name: str) -> Check:
        def look(look: Look) -> Iterator[Found]:
            looked.append(name)
            yield from ()

        return Check(name, "", look)

    named = {name: looks(name) for name in ("one", "two", "three")}
    monkeypatch.setattr(stage, "checks", lambda: named)
    ran(4, {"one": 0}, ["three"])
    verify(clock=factories.clock(factories.at(days=5)))
    assert looked == ["three", "one", "two"]


def test_a_check_that_falls_over_a_row_is_a_finding_and_the_others_have_their_turn(
    house: Note, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def by_statement(look: Look) -> Iterator[Found]:
        yield Found("index", "one")
        yield Found("index", "two")
        yield from check.rows(look, "SELECT 'item', '1', 1, ('a text of theirs'::uuid)::text")

    def by_itself(look: Look) -> Iterator[Found]:
        look.looked += 1
        yield Found("index", dict[str, str]()["nothing"])

    def last(look: Look) -> Iterator[Found]:
        yield Found("index", "three")

    looks = (by_statement, by_itself, last)
    only = {look.__name__: Check(look.__name__, "", look) for look in looks}
    monkeypatch.setattr(stage, "checks", lambda: only)
    monkeypatch.setattr(command_of_verify, "checks", lambda: only)
    code, out = command("--json", "--limit", "1", capsys=capsys)
    told = json.loads(out)
    assert (code, told["findings"], told["unwritten"]) == (1, 5, 1)
    assert told["found"] == {"by_statement": 3, "by_itself": 1, "last": 1}
    run = StageRun.objects.latest("pk")
    assert (run.status, run.error) == ("done", "")
    assert [(one.check_name, one.kind, one.reference, one.detail) for one in rows()] == [
        ("by_statement", "check", "by_statement",
         {"wrong": "it could not look", "error": "DataError"}),
        ("by_statement", "index", "one", {}),
        ("by_itself", "check", "by_itself", {"wrong": "it could not look", "error": "KeyError"}),
        ("last", "index", "three", {}),
    ]  # fmt: skip


def test_where_the_database_went_away_the_run_fails(
    house: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(look: Look) -> Iterator[Found]:
        yield Found("index", str(breaking.do("SELECT pg_terminate_backend(pg_backend_pid())")))

    monkeypatch.setattr(stage, "checks", lambda: {"cut": Check("cut", "", cut)})
    with pytest.raises(DatabaseError):
        verify(clock=factories.clock(factories.at()))
    assert StageRun.objects.latest("pk").status == "failed" and not rows()


def test_every_app_offers_its_own_checks_under_names_that_are_its_own() -> None:
    from exporter import verify as exporter
    from review import verify as review

    own = {check.name for check in (*exporter.CHECKS, *review.CHECKS)}
    assert own <= set(checks()) and own == set(offered._offered)
    assert all(check.says and name == check.name for name, check in checks().items())


@pytest.mark.django_db
def test_a_million_findings_are_counted_and_a_handful_is_fetched() -> None:
    look = Look(factories.at(), 3)
    sql = "SELECT 'item', n::text, NULL::bigint, NULL::jsonb FROM generate_series(1, 200000) n"
    assert len(list(check.rows(look, sql))) == 3 and look.beyond == 199_997
