"""Rebuild: what is above the raw items comes out as it was, and no model is asked.

How: a house in which people did everything that they may do, with a scripted model whose server is
closed afterwards; what came of it is compared as canonical rows and as files of the vault.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from argus import canonical, postgres
from argus.owner import as_owner
from argus.portable.enter import enter
from argus.portable.leave import leave
from argus.rebuilding import compared
from argus.rebuilding.rebuild import Report, rebuild
from argus.rebuilding.record import MADE, table_of
from argus.scratch import leftovers
from argus.undo import undo_run
from exporter.export import export
from exporter.place import Place, around_vault
from memory import edits, guards, keeping, letgo, projects, redistill
from memory.audit import worker_name
from memory.errors import Conflict
from memory.llm.remote.embed import shared
from memory.llm.remote.structured import forget_dialects
from memory.models import (
    Act,
    DedupVerdict,
    Episode,
    GateRejection,
    ModelReply,
    Note,
    Principal,
    PurgeLedger,
    RawItem,
    SearchText,
    StageRun,
)
from memory.stages.dedup import dedup
from memory.stages.distill import distill
from memory.stages.embed import embed
from memory.stages.segment import segment
from recall.notes import recall_notes
from review import holds, rejections
from review.grounding import Words
from tests import cluster
from tests.factories import EMBED_MODEL, clock, document, end_session, project, three, turns
from tests.factories import note as note_row
from tests.openai_server import (
    CHAT,
    OpenAIServer,
    Request,
    Step,
    behave,
    note,
    notes,
    running,
    says,
    wait_until,
)

OLD = "The staging database of the shop uses PostgreSQL 15.6 on port 5433."
NEW = "The staging database of the shop uses PostgreSQL 16.2 on port 5433."
LOOSE = "We decided to release the shop from tags only, never from main."
MADE_UP = "Everybody in the team loves the colour of the new logo."


def mind(request: Request) -> Step:
    """A model that knows a newer version, and that twice says what the record does not."""
    system, user = str(request.body["messages"][0]["content"]), request.user
    if '"verdict"' in system and "16.2" in user.partition("OLD 1")[0] and "15.6" in user:
        number = next(n for n in "123" if f"OLD {n} " in user and "15.6" in _part(user, n))
        return says(
            f'{{"verdict": "supersede", "target": {number}, "reasoning": "A newer version."}}'
        )
    if '"source_ref"' in system and "release the shop" in user:
        found = [
            note(LOOSE, source_ref="we decided to release the shop, from tags only"),
            note(MADE_UP, source_ref="a quote that nobody said at all"),
        ]
        return says(notes(*found))
    return behave(request)


def _part(user: str, number: str) -> str:
    return user.partition(f"OLD {number} ")[2].partition("OLD ")[0]


#: Tables that a hand gets into here.
TOUCHED = ("note", "evidence", "gaterejection", "modelreply", "capturereceipt", "act")


class House:
    """Alice's house, and a clock that goes on with whatever is done."""

    def __init__(self) -> None:
        self.alice, self.bob, _ = three()
        self.now = datetime.fromisoformat("2026-03-02T09:00:00+00:00")

    def later(self, minutes: float = 1) -> datetime:
        self.now += timedelta(minutes=minutes)
        return self.now

    def say(self, session: str, *bodies: str, **fields: Any) -> None:
        """A session of a new day, said, ended and processed."""
        start = self.later(24 * 60)
        turns(self.alice, bodies, session=session, start=start, **fields)
        self.later(len(bodies) + 1)
        end_session(self.alice, session, now=self.later())
        self.process()

    def process(self) -> None:
        for stage in (segment, distill, embed, dedup):
            stage(clock=clock(self.later()))

    def live(self, content: str) -> Note:
        found: Note = Note.objects.visible_to(self.alice).live(self.now).get(content=content)
        return found


def live_house(server: OpenAIServer) -> House:
    """Everything that people may do, done."""
    server.script(CHAT, *[mind] * 400)
    house = House()
    by: dict[str, Any] = {"by": house.alice}
    around = ("", "The nightly export was red for an hour.", "Nobody looks after the printer now.")
    for number, more in enumerate(around):
        house.say(f"old {number}", f"Which version is it, number {number}?", f"{OLD} {more * 3}")
    house.say(
        "talk",
        "What did we find yesterday?",
        "We moved the job queue from Redis to Postgres because jobs were lost at restart.",
        "And the mail worker?",
        "The mail worker runs on the host called kestrel since the last week of May.",
        "The search index of the shop is rebuilt every night at two o'clock.",
    )
    for session in ("heard", "new"):
        recall_notes(OLD, principal=house.alice, now=house.later(), session=session)
    more = "The plants of the office want to be watered twice a week. " * 3
    house.say("heard", "Which version is it again?", f"{OLD} {more}")
    house.say("new", "Is there news of the database?", NEW)
    house.say("rules", "How do we release?", "We decided to release the shop from tags only.")
    document(house.alice, "# Ports\n\nThe proxy of the shop listens on port 8443.", when=house.now)
    house.process()
    _decide(house, by)
    _merge(house, by)
    _undo(house)
    _purge(house)
    return house


def _decide(house: House, by: dict[str, Any]) -> None:
    held = DedupVerdict.objects.as_pipeline().get(status="pending").pk
    holds.approve(held, now=house.later(), reason="it is newer", **by)
    holds.undo(held, now=house.later(), **by)
    holds.reject(held, now=house.later(), **by)
    holds.undo(held, now=house.later(), **by)
    holds.approve(held, now=house.later(), **by)
    queue = house.live(
        "We moved the job queue from Redis to Postgres because jobs were lost at restart."
    )
    keeping.pin(queue.pk, now=house.later(), **by)
    edits.edit_note(
        queue.pk,
        title="Job queue",
        content="The job queue lies in Postgres.\nJobs were lost at restart with Redis.",
        now=house.later(),
        reason="shorter",
        **by,
    )
    house.process()
    mail = house.live("The mail worker runs on the host called kestrel since the last week of May.")
    keeping.retire_note(mail.pk, now=house.later(), reason="gone", **by)
    keeping.restore_note(mail.pk, now=house.later(), **by)
    night = house.live("The search index of the shop is rebuilt every night at two o'clock.")
    keeping.retire_note(night.pk, now=house.later(), **by)
    loose, made_up = (
        GateRejection.objects.visible_to(house.alice).get(candidate__content=content)
        for content in (LOOSE, MADE_UP)
    )
    words = Words("We decided to release the shop from tags only.", title="Releases from tags")
    rejections.accept(loose.pk, now=house.later(), reason="it was said", words=words, **by)
    rejections.forbid(made_up.pk, now=house.later(), reason="nobody said that", **by)
    house.process()


def _merge(house: House, by: dict[str, Any]) -> None:
    shop = project("shop")
    other = project("store")
    house.say("store", "And the store?", "The store runs on two hosts in Lisbon.", cwd="/src/store")
    projects.merge(other.pk, shop.pk, now=house.later(), **by)
    house.say(
        "store 2",
        "What of the store?",
        "The store is paid for until the end of June.",
        cwd="/src/store",
    )
    told = Episode.objects.as_pipeline().get(session="store")
    run = redistill.start(told.pk, now=house.later(), **by)
    redistill.propose(run.pk, told.unit_key, house.alice.pk, clock=clock(house.later()))
    proposal = redistill.open_proposal(told.unit_key)
    assert proposal is not None
    seen = redistill.changes(proposal, now=house.now).seen
    redistill.apply(proposal.pk, seen=seen, now=house.later(), **by)
    house.process()


def _purge(house: House) -> None:
    """A session of which nothing is left, and one that lost what began it."""
    said = "The invoice printer of the office stands on the second floor."
    house.say("all", "Where does the printer stand?", said)
    house.say(
        "some",
        "The first proxy of the farm has the address ten.",
        "Is that so?",
        "The second proxy of the farm has the address eleven.",
    )
    rows = RawItem.objects.visible_to(house.alice)
    ids = list(rows.filter(session="all").values_list("pk", flat=True))
    ids.append(rows.get(body__startswith="The first proxy").pk)
    with connection.cursor() as cursor:
        cursor.execute("SELECT argus_purge(%s, 'alice', 'asked')", [ids])
    house.later(24 * 60)
    house.process()


def _undo(house: House) -> None:
    """A run of distill, and one of dedup, taken back."""
    house.say(
        "wrong",
        "Which one?",
        "Yes. The store is paid for until the end of June.",
        "And the cat?",
        "The cat of the office is called Tilda and sleeps in the printer room.",
    )
    for stage in ("dedup", "distill"):
        last = StageRun.objects.filter(stage=stage).order_by("-pk")[0]
        report = undo_run(last.pk, by=house.alice, now=house.later(), reason="a mistake")
        assert report.done, stage


def vault(folder: Path, owner: Principal) -> dict[str, bytes]:
    """The files of an export into an empty folder."""
    with around_vault(Place(folder, owner.name)):
        export()
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.md"))
    }


def damage(*statements: str) -> None:
    """What a bug or a hand in the database might do, past the triggers."""
    with as_owner(), connection.cursor() as cursor:
        for table in TOUCHED:
            cursor.execute(f"ALTER TABLE memory_{table} DISABLE TRIGGER argus_frozen")
        for statement in statements:
            cursor.execute(statement)
        for table in TOUCHED:
            cursor.execute(f"ALTER TABLE memory_{table} ENABLE TRIGGER argus_frozen")


@pytest.fixture(scope="module")
def built(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[str, House]]:
    """The name of a database that holds the house, and the house; its model is away by now."""
    with django_db_blocker.unblock():
        name = cluster.clone(template_db)
        with cluster.using(name), running() as server:
            forget_dialects()
            shared.cache_clear()
            at = {"model_url": server.url, "model": "scripted", "embedder": "url"}
            at |= {"embed_url": server.url, "embed_model": EMBED_MODEL}
            with override_settings(ARGUS=settings.ARGUS.model_copy(update=at)):
                house = live_house(server)
        yield name, house
        cluster.drop(name)


@pytest.fixture
def house(
    built: tuple[str, House], django_db_blocker: DjangoDbBlocker
) -> Iterator[tuple[str, House]]:
    """The house, in a database of this test's own, and its name."""
    with django_db_blocker.unblock():
        name = cluster.clone(built[0])
        with cluster.using(name):
            yield name, built[1]
        cluster.drop(name)


def look(house: House) -> Report:
    return rebuild(by=house.alice, now=house.later())


def settle(house: House) -> Report:
    return rebuild(by=house.alice, now=house.later(), apply=True, reason="a hand was in it")


def command(*arguments: str) -> tuple[int, dict[str, Any]]:
    """How the command ends, and what it says."""
    out, code = io.StringIO(), 0
    try:
        call_command("rebuild", "--json", *arguments, stdout=out)
    except SystemExit as end:
        code = int(str(end.code))
    return code, json.loads(out.getvalue())


def tell(report: Report) -> str:
    """What differs, for the test's own report."""
    return str({key: value for key, value in report.as_json().items() if value})


def test_it_makes_a_lived_in_house_again_and_mends_what_a_hand_did(
    house: tuple[str, House], tmp_path: Path
) -> None:
    name, home = house
    before = canonical.digests(MADE)
    files = vault(tmp_path / "before", home.alice)
    report = look(home)
    assert report.identical and not report.troubles and not report.not_kept, tell(report)
    assert report.events["act"] >= 14 and report.events["dedup"] >= 12, tell(report)
    assert canonical.digests(MADE) == before, "looking changes nothing"
    # Words changed, a verdict without its effect, evidence that is gone, another detail.
    retired = Note.objects.as_pipeline().get(retired_reason="superseded")
    gone = home.live("The store runs on two hosts in Lisbon.")
    damage(
        f"UPDATE memory_note SET title = 'Something else' WHERE id = '{retired.pk}'",
        f"UPDATE memory_note SET deleted_at = NULL, retired_reason = '' WHERE id = '{retired.pk}'",
        f"DELETE FROM memory_evidence WHERE note_id = '{gone.pk}'",
        "UPDATE memory_gaterejection SET detail = 'nothing' WHERE reason = 'grounding'",
    )
    assert vault(tmp_path / "hurt", home.alice) != files
    code, told = command()
    assert code == 3 and not told["identical"] and told["notes"]["change"] == 1, told
    assert told["change"][0]["columns"] == ["title", "deleted_at", "retired_reason"]
    with pytest.raises(CommandError, match="--reason"):
        call_command("rebuild", "--yes")
    code, told = command("--yes", "--reason", "a hand was in it")
    assert code == 0 and told["done"] and canonical.digests(MADE) == before
    assert vault(tmp_path / "after", home.alice) == files
    act = Act.objects.get(verb="rebuild")
    assert act.reason == "a hand was in it" and act.detail["notes_change"] == 1
    last = PurgeLedger.objects.order_by("-pk").first()
    assert last is not None and last.reason.startswith("rebuild")
    assert guards.missing_triggers(connection) == []


def test_it_keeps_what_it_cannot_make_and_says_so(house: tuple[str, House]) -> None:
    _, home = house
    kept = ModelReply.objects.filter(port="distill").order_by("pk").first()
    assert kept is not None
    # A note that no distiller makes; a reply that was let go; a run at work.
    made = note_row(
        home.alice,
        "Nobody can tell where this note comes from, and here it is.",
        created_at=timezone.now(),
    )
    damage(f"DELETE FROM memory_modelreply WHERE id = {kept.pk}")
    report = look(home)
    assert report.not_kept == tuple(kept.units), tell(report)
    assert [one.note for one in report.difference.vanish] == [str(made.pk)], tell(report)
    assert settle(home).done
    made.refresh_from_db()
    assert made.retired_reason == "rebuilt" and made.evidence.exists()
    assert look(home).identical, "what was not made again once is not told for ever"


def test_it_needs_no_row_of_a_ledger_that_was_let_go(house: tuple[str, House]) -> None:
    _, home = house
    shown = DedupVerdict.objects.as_pipeline().filter(verdict="duplicate", corroborates=False)
    assert shown.exists(), "somebody repeated what was recalled"
    now = timezone.now()
    went = {
        name: letgo.let_go(name, now.date(), by=home.alice, reason="old", now=now)
        for name in letgo.LEDGERS
    }
    assert went["injection"].counts and went["segment_check"].counts and went["stage_run"].counts
    # Whatever may be let go some day, or was.
    damage("DELETE FROM memory_capturereceipt")
    report = look(home)
    assert report.identical and not report.troubles and not report.not_kept, tell(report)
    assert report.events["purge"] == 1, "what is let go of a ledger is no purge of the record"


def test_it_makes_what_a_purge_left_again_as_it_stands(house: tuple[str, House]) -> None:
    _, home = house
    rows = RawItem.objects.visible_to(home.alice)
    # What a live note stood on first, and a turn of an episode about whose notes people decided.
    stays = Note.objects.as_pipeline().get(retired_reason="superseded")
    ids = list(rows.filter(session=stays.session).values_list("pk", flat=True))
    ids.append(rows.get(body__startswith="The mail worker").pk)
    with connection.cursor() as cursor:
        cursor.execute("SELECT argus_purge(%s, 'alice', 'asked')", [ids])
    assert Note.objects.as_pipeline().filter(pk=stays.pk).exists(), "others bear it out"
    home.later(24 * 60)
    home.process()
    report = look(home)
    assert report.identical and not report.troubles, tell(report)


def test_it_keeps_what_came_by_a_file(
    house: tuple[str, House], template_db: str, tmp_path: Path
) -> None:
    _, home = house
    path = tmp_path / "alice.jsonl"
    leave(path, me=home.alice, now=home.later())
    name = cluster.clone(template_db)
    try:
        with cluster.using(name):
            moved = House()
            # What comes by a file is captured now.
            moved.now = timezone.now()
            came = enter(path, me=moved.alice, now=moved.later())
            assert came.notes["made"], came
            moved.later(24 * 60)
            moved.process()
            report = look(moved)
            assert report.identical and not report.troubles, tell(report)
            assert report.events["come"] and report.events["dedup"]
    finally:
        cluster.drop(name)


def test_it_writes_nothing_where_something_could_not_be_done_again(
    house: tuple[str, House],
) -> None:
    _, home = house
    damage("UPDATE memory_act SET detail = '{\"raw_item\": 999999}' WHERE verb = 'edit'")
    code, told = command("--yes", "--reason", "tidy")
    assert code == 3 and told["troubles"] and not told["done"], told
    assert not Act.objects.filter(verb="rebuild").exists()


def test_it_makes_all_again_where_nothing_of_it_is_left(clone_db: str, tmp_path: Path) -> None:
    home = House()
    by: dict[str, Any] = {"by": home.alice}
    for number in range(3):
        more = "Nobody looks after the printer of the office now. " * number
        home.say(f"old {number}", f"Which version is it, number {number}?", f"{OLD} {more}")
    home.say("new", "Is there news of the database?", f"We changed that. {NEW}")
    document(home.alice, "# Ports\n\nThe proxy of the shop listens on port 8443.", when=home.now)
    home.process()
    for held in DedupVerdict.objects.as_pipeline().filter(status="pending"):
        holds.approve(held.pk, now=home.later(), **by)
    edited = Note.objects.visible_to(home.alice).live(home.now).earliest("pk")
    keeping.pin(edited.pk, now=home.later(), **by)
    edits.edit_note(edited.pk, title="Said anew", content="Said otherwise.", now=home.later(),
                    reason="", **by)  # fmt: skip
    home.process()
    before, files = canonical.digests(MADE), vault(tmp_path / "before", home.alice)
    assert files and before["memory_note"].rows > 3 and before["memory_dedupverdict"].rows > 3
    name = connection.settings_dict["NAME"]
    with psycopg.connect(postgres.url(cluster.home(), postgres.SUPERUSER, name)) as hand:
        # No trigger and no key minds: all that is made is gone.
        hand.execute("SET session_replication_role = replica")
        for table in (*map(table_of, MADE), table_of(SearchText)):
            hand.execute(f"DELETE FROM {table}".encode())
    assert not vault(tmp_path / "gone", home.alice)
    report = settle(home)
    assert not report.troubles and report.events["run"] > 8, tell(report)
    assert canonical.digests(MADE) == before, tell(report)
    assert vault(tmp_path / "after", home.alice) == files


def test_it_writes_nothing_beside_a_worker_or_over_what_came_meanwhile(
    house: tuple[str, House], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, home = house
    run = StageRun.objects.create(stage="dedup", worker=worker_name())
    with pytest.raises(Conflict, match=r"run \d+ \(dedup\) is at work"):
        settle(home)
    StageRun.objects.filter(pk=run.pk).update(status="done")
    note = home.live("The store runs on two hosts in Lisbon.")
    real = compared.compare

    def meanwhile() -> Any:
        found = real()
        with psycopg.connect(cluster.owner_address(cluster.address(house[0]))) as other:
            other.execute("UPDATE memory_note SET confidence = 0.9 WHERE id = %s", [note.pk])
        return found

    monkeypatch.setattr("argus.rebuilding.rebuild.compare", meanwhile)
    with pytest.raises(Conflict, match="the house changed"):
        settle(home)
    assert not Act.objects.filter(verb="rebuild").exists()


KILLED = """
import django; django.setup()
from django.core.management import call_command
call_command("rebuild", yes=True, reason="killed", no_progress=True)
"""


def test_it_leaves_the_house_as_it_was_when_it_is_killed(house: tuple[str, House]) -> None:
    name, home = house
    note = home.live("The store runs on two hosts in Lisbon.")
    damage(f"UPDATE memory_note SET title = 'Something else' WHERE id = '{note.pk}'")
    before = canonical.digests(MADE)
    address = cluster.address(name)
    environment = {
        **os.environ,
        "ARGUS_DATABASE_URL": address,
        "ARGUS_OWNER_DATABASE_URL": cluster.owner_address(address),
        "ARGUS_PRINCIPAL": "alice",
        "DJANGO_SETTINGS_MODULE": "argus.settings",
    }
    # It comes as far as the last statement, which waits for this lock.
    with psycopg.connect(cluster.owner_address(address)) as holder:
        holder.execute("LOCK TABLE memory_searchtext IN ACCESS EXCLUSIVE MODE")
        process = subprocess.Popen([sys.executable, "-c", KILLED], env=environment)
        try:
            assert wait_until(lambda: waits_for_a_lock(name), 90), process.poll()
        finally:
            process.kill()
            process.wait()
    assert canonical.digests(MADE) == before and not Act.objects.filter(verb="rebuild").exists()
    assert wait_until(lambda: bool(leftovers()), 30), "its database is swept"


def waits_for_a_lock(name: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE d.datname = %s AND NOT l.granted",
            [name],
        )
        return bool(cursor.fetchone()[0])
