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
from memory import edits, guards, keeping, letgo, people, tracks
from memory.access import principal
from memory.audit import worker_name
from memory.errors import Conflict, NotFound
from memory.llm.remote.embed import shared
from memory.llm.remote.structured import forget_dialects
from memory.models import (
    Act,
    Centroid,
    DedupVerdict,
    ModelReply,
    Note,
    Principal,
    PurgeLedger,
    RawItem,
    SearchText,
    StageRun,
)
from memory.purge import plan, purge
from memory.selection import Selection
from memory.verifying.check import Look
from memory.verifying.offered import checks
from review import holds
from tests import cluster
from tests.argus.livedin import NEW, OLD, House, live_house
from tests.factories import EMBED_MODEL, document, end_session, turns, verdict
from tests.factories import note as note_row
from tests.openai_server import running, wait_until

#: Tables that a hand gets into here.
TOUCHED = (
    "note", "evidence", "gaterejection", "modelreply", "capturereceipt", "act", "purgeproof",
    "dedupverdict",
)  # fmt: skip

#: What people say again and again, a lamp and a kettle; what was said of another project once.
KETTLE = "The kettle of the kitchen uses Node 20.11 on port 6001."
LAMP = "The lamp of the attic uses Redis 7.2 on port 7001."
CANTEEN = "The canteen of the farm uses PostgreSQL 12.1 on port 5544."


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
    with django_db_blocker.unblock(), cluster.copied(built[0]) as name:
        yield name, built[1]


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


def test_it_leaves_no_hold_about_a_note_that_it_does_not_make(house: tuple[str, House]) -> None:
    _, home = house
    asked = home.live("The store runs on two hosts in Lisbon.")
    # As if the distiller made it once, and does no more.
    made = note_row(
        home.alice, "The store runs on three hosts in Lisbon.", created_at=timezone.now()
    )
    run = StageRun.objects.filter(stage="dedup").latest("pk")
    held = verdict(made, asked, run=run, model_asked="rules-1", model_real="rules-1")
    sleeps = look(home)
    assert sleeps.holds == (held.pk,) and not sleeps.troubles, tell(sleeps)
    held.refresh_from_db()
    assert held.status == "pending", "looking changes nothing"
    report = settle(home)
    assert report.done and report.holds == (held.pk,), tell(report)
    made.refresh_from_db()
    held.refresh_from_db()
    assert (made.retired_reason, held.status, held.decided_by) == ("rebuilt", "undone", home.alice)
    decision = held.decisions.get()
    assert (decision.action, decision.status_before, decision.reason) == (
        "rebuild", "pending", "a hand was in it"
    )  # fmt: skip
    assert Act.objects.get(kind="verdict", verb="rebuild").reference == str(held.pk)
    assert not list(checks()["holds"].look(Look(timezone.now(), 10)))
    assert look(home).identical, "nor does the next one find anything"
    # Who wants it after all brings the note back, and says so.
    keeping.restore_note(made.pk, by=home.alice, now=timezone.now())
    assert holds.approve(held.pk, by=home.alice, now=timezone.now()).status == "approved"
    report = look(home)
    assert report.identical and not report.troubles and not report.not_kept, tell(report)


def test_it_does_again_what_somebody_did_with_a_note_that_came_back(
    house: tuple[str, House],
) -> None:
    _, home = house
    asked = home.live("The store runs on two hosts in Lisbon.")
    twin = note_row(home.alice, "The store has two hosts in Lisbon.", created_at=timezone.now())
    run = StageRun.objects.filter(stage="dedup").latest("pk")
    fields = {"confidence_before": twin.confidence, "confidence_after": 0.65, "run": run}
    fields |= {"model_asked": "rules-1", "model_real": "rules-1", "created_at": twin.created_at}
    held = verdict(asked, twin, kind="duplicate", **fields)
    assert settle(home).done
    keeping.restore_note(twin.pk, by=home.alice, now=timezone.now())
    keeping.pin(twin.pk, by=home.alice, now=timezone.now())
    holds.approve(held.pk, by=home.alice, now=timezone.now())
    twin.refresh_from_db()
    asked.refresh_from_db()
    assert (twin.confidence, asked.retired_reason) == (0.65, "duplicate")
    before = canonical.digests(MADE)
    report = look(home)
    assert report.identical and not report.troubles, tell(report)
    assert settle(home).done and canonical.digests(MADE) == before
    # And as often as somebody changes their mind.
    holds.undo(held.pk, by=home.alice, now=timezone.now())
    keeping.retire_note(twin.pk, by=home.alice, now=timezone.now())
    keeping.restore_note(twin.pk, by=home.alice, now=timezone.now())
    report = look(home)
    assert report.identical and not report.troubles, tell(report)


def test_it_keeps_a_note_that_nothing_makes_again_as_people_decided(
    house: tuple[str, House],
) -> None:
    _, home = house
    by: dict[str, Any] = {"by": home.alice}
    texts = ("The key of the attic hangs", "The ladder stands", "The old fan lies", "The lamp is")
    pinned, gone, edited, unsaid = (
        note_row(home.alice, f"{text} behind the green door.", created_at=timezone.now())
        for text in texts
    )
    keeping.pin(pinned.pk, now=timezone.now(), **by)
    keeping.retire_note(gone.pk, now=timezone.now(), **by)
    edits.edit_note(edited.pk, title="Fan", content="The old fan was given away last week.",
                    now=timezone.now(), reason="", **by)  # fmt: skip
    hurt = home.live("The store runs on two hosts in Lisbon.")
    damage(f"UPDATE memory_note SET title = 'Something else' WHERE id = '{hurt.pk}'")
    report = settle(home)
    assert report.done and not report.troubles, tell(report)
    told = {f"note {one.pk}" for one in (pinned, gone, edited)}
    assert set(report.not_kept) == told, tell(report)
    assert [one.note for one in report.difference.vanish] == [str(unsaid.pk)], tell(report)
    rows = Note.objects.as_pipeline()
    found = {one.pk: one.retired_reason for one in rows.filter(unit_key__startswith="made:")}
    assert found == {pinned.pk: "", gone.pk: "retired", edited.pk: "edited", unsaid.pk: "rebuilt"}
    assert rows.filter(content="The old fan was given away last week.", deleted_at=None).exists()
    assert rows.get(pk=hurt.pk).title != "Something else", "what is hurt elsewhere is mended"
    again = look(home)
    assert again.identical and set(again.not_kept) == told, tell(again)


def test_it_asks_no_team_of_today_who_might_do_what_was_done(clone_db: str) -> None:
    home, stranger = House(), principal("stranger")
    start = home.later(24 * 60)
    for who, said in ((home.alice, OLD), (stranger, NEW)):
        turns(who, ["Which version is it?", said], session=who.name, start=start, visibility="team")
        end_session(who, who.name, now=home.later(10))
    home.process()
    run = StageRun.objects.filter(stage="distill").latest("pk")
    undone = undo_run(run.pk, by=home.bob, now=home.later())
    assert (len(undone.done), undone.foreign) == (1, 1), "of a stranger's note nobody else decides"
    shared = Note.objects.as_pipeline().get(owner=home.alice)
    keeping.restore_note(shared.pk, by=home.bob, now=home.later())
    # One went, and one came who had undone more.
    people.leave("bob", ["pair"], by=home.alice, now=home.later())
    with pytest.raises(NotFound):
        keeping.retire_note(shared.pk, by=home.bob, now=home.later())
    people.join("stranger", ["pair", "crew"], by=home.alice, now=home.later())
    people.join("bob", ["crew"], by=home.alice, now=home.later())
    report = look(home)
    assert report.identical and not report.troubles and not report.not_kept, tell(report)


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


def take(owner: Principal, asked: Selection) -> None:
    """A purge of what is theirs, as people do it."""
    what = plan(asked, by=owner)
    purge(what, by=owner, reason="asked", now=timezone.now())


def test_it_does_again_what_was_judged_while_there_were_other_words(clone_db: str) -> None:
    home = House()
    for number in range(3):
        # Of the lamp twice: after a third time what is newer would wait for a person.
        said = (LAMP, KETTLE, OLD)[number // 2 :]
        more = "Nobody looks after the printer of the office now. " * number
        talk = [word for one in said for word in ("And what else?", f"{one} {more}")]
        home.say(f"old {number}", *talk)
    home.say("farm", "What of the canteen?", CANTEEN, cwd="/src/farm")
    newer = (LAMP.replace("7.2", "8.4"), KETTLE.replace("20.11", "22.4"), NEW)
    home.say("new", *(word for one in newer for word in ("What changed?", f"This did. {one}")))
    rows = DedupVerdict.objects.as_pipeline().filter(verdict="supersede")
    done = rows.get(status="applied")
    assert done.lexical, "how rare its words are follows from all notes of alice, in any project"
    undone, rejected = rows.filter(status="pending").order_by("pk")
    holds.approve(undone.pk, by=home.alice, now=home.later())
    holds.undo(undone.pk, by=home.alice, now=home.later())
    holds.reject(rejected.pk, by=home.alice, now=home.later())
    take(home.alice, Selection(matching="canteen"))
    report = look(home)
    assert report.identical and not report.troubles, tell(report)
    # Words by which one of the holds came.
    take(home.alice, Selection(matching=r"This did\. The kettle"))
    assert not rows.filter(pk__in=(undone.pk, rejected.pk)).exists()
    report = look(home)
    assert report.identical and not report.troubles, tell(report)
    home.later(24 * 60)
    home.process()
    report = look(home)
    assert report.identical and not report.troubles, tell(report)


def test_it_keeps_the_neighbours_that_the_graph_of_a_large_house_found(
    clone_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = House()
    home.say("old", "Which version is it?", OLD, "And the kettle?", KETTLE, "And the lamp?", LAMP)
    rows = DedupVerdict.objects.as_pipeline()
    assert look(home).identical
    last = rows.latest("pk")
    # As a graph does that missed one.
    damage(f"UPDATE memory_dedupverdict SET candidates = '[]' WHERE id = {last.pk}")
    told = look(home).difference.tables["memory_dedupverdict"]
    assert (told.more, told.less) == (1, 1), "few notes are compared, and then it is a fault"
    monkeypatch.setattr(tracks, "EXACT_ROWS_MAX", 1)
    report = look(home)
    assert report.identical and not report.troubles, tell(report)
    # What was decided is another thing: that follows from what was kept.
    damage(f"UPDATE memory_dedupverdict SET verdict = 'refine' WHERE id = {last.pk}")
    assert not look(home).identical


def test_it_takes_over_of_nobody_whom_no_purge_was_about(clone_db: str) -> None:
    home, rita = House(), principal("rita")
    home.say("old", "Which version is it?", OLD, "And the kettle?", KETTLE)
    turns(rita, ["And the lamp?", LAMP], session="lamp", start=home.later(24 * 60))
    end_session(rita, "lamp", now=home.later(10))
    home.process()
    take(rita, Selection(session="lamp"))
    assert look(home).identical
    raised, gone = home.live(OLD), home.live(KETTLE)
    damage(
        f"UPDATE memory_note SET confidence = 0.9 WHERE id = '{raised.pk}'",
        "UPDATE memory_note SET deleted_at = created_at + interval '1 hour',"
        f" retired_reason = 'retired' WHERE id = '{gone.pk}'",
        f"DELETE FROM memory_centroid WHERE owner_id = {home.alice.pk}",
    )
    found = {
        str(raised.pk): ("confidence",),
        str(gone.pk): ("deleted_at", "retired_reason"),
    }
    for proof in ("scanned", "scanned - 'of'"):
        damage(f"UPDATE memory_purgeproof SET scanned = {proof}")
        report = look(home)
        assert {one.note: one.columns for one in report.difference.change} == found, tell(report)
        assert report.difference.tables["memory_centroid"].more == 1, tell(report)
    # Of whom one was, of before proofs said so, nobody knows: it may have been about alice.
    damage("UPDATE memory_purgeproof SET scanned = scanned - 'of' - 'owners'")
    assert look(home).identical
    damage(f"UPDATE memory_purgeproof SET scanned = '{{\"owners\": [{rita.pk}]}}'")
    assert settle(home).done and look(home).identical
    assert home.live(KETTLE) == gone and home.live(OLD).confidence == raised.confidence
    assert Centroid.objects.filter(owner=home.alice).exists()


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
    with (
        monkeypatch.context() as told,
        pytest.raises(Conflict, match=r"run \d+ \(dedup\) is at work"),
    ):
        told.setattr("argus.rebuilding.rebuild.scratch", None)
        settle(home)  # At once: nothing is made for it before.
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


def test_it_says_who_is_in_its_way_and_does_not_wait_for_ever(
    house: tuple[str, House], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, home = house
    monkeypatch.setattr("memory.purge.LOCK_SECONDS", 1)
    with psycopg.connect(cluster.owner_address(cluster.address(name))) as other:
        other.execute("LOCK TABLE memory_decision IN SHARE MODE")
        with pytest.raises(Conflict, match="nothing was changed, try again"):
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
