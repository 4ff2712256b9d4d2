"""One row of each kind that a page changes, all of them Alice's, and every act on them by a page.

Rows by the factories and the real verbs, plain rows where a verb would need a model. An act says
its address, its form, and what it needs; the fields of its form are all that its view reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.apps import apps
from django.urls import reverse

from memory import projects
from memory.access import create_key
from memory.keeping import pin, retire_note
from memory.models import (
    AccessKey,
    Episode,
    GateRejection,
    Injection,
    PathRule,
    Principal,
    ProjectAlias,
    Proposal,
    StageRun,
    TaskItem,
)
from memory.redistill import changes
from memory.rejected import forbid
from memory.stages.track import track
from review import holds, rejections, tasks
from review.models import Card, Draw
from tests.factories import QUOTE, SAID, at, clock, episode, note, project, verdict
from tests.factories import turns as said
from tests.review.test_parked import many


@dataclass(frozen=True)
class Doing:
    """An act by a page: its name, its address, what a person sends, and what it needs."""

    name: str
    address: str
    needs: str
    form: Mapping[str, str]


def doings(alice: Principal) -> list[Doing]:
    """Every act there is, each on a row that it can be done to. They are not done one after
    another: each is possible before any other was done."""
    return [
        *_of_notes(alice),
        *_of_holds(alice),
        *_of_rejections(alice),
        *_of_units(alice),
        *_of_projects(alice),
        *_of_the_rest(alice),
    ]


def snapshot() -> dict[str, str]:
    """Every row of every table of ours, by table; but who logs in as whom."""
    return {
        model._meta.db_table: repr(list(model._base_manager.order_by("pk").values()))
        for app in ("memory", "review", "recall", "django_q")
        for model in apps.get_app_config(app).get_models(include_auto_created=True)
        if model is not Principal
    }


def _doing(name: str, needs: str, /, *args: object, **form: str) -> Doing:
    verb = next((f" {one}" for one in args if isinstance(one, str)), "")
    return Doing(name + verb, reverse(f"admin:{name}", args=args), needs, form)


def _of_notes(alice: Principal) -> list[Doing]:
    one = note(alice, "The staging server listens on port 8443.")
    pinned = note(alice, "The backup runs at three in the morning.")
    gone = note(alice, "The till prints on the second tray.")
    pin(pinned.pk, by=alice, now=at())
    retire_note(gone.pk, by=alice, now=at(days=1))
    shown = Injection.objects.create(
        owner=alice, mode="prompt", outcome="injected", query="Which port?", note_ids=[one.pk],
        hits=[{"note": str(one.pk), "injected": True}],
    )  # fmt: skip
    drawn = Draw.objects.create(
        principal=alice, note=one, drawn_by="draw", probability=1, pool=1, created_at=at()
    )
    Card.objects.create(principal=alice, note=one, state={}, due_at=at(), created_at=at())
    words = {"title": "Staging", "content": "The staging server listens on port 9443."}
    return [
        _doing("note-edit", "decide", one.pk, **words, reason="moved"),
        _doing("note-retire", "decide", one.pk, reason="not so"),
        _doing("note-restore", "decide", gone.pk, reason="it is so"),
        _doing("note-pin", "look", one.pk),
        _doing("note-unpin", "look", pinned.pk),
        _doing("note-feedback", "look", one.pk, verdict="useful", project="", reason="it was"),
        _doing("injection-feedback", "look", shown.pk,
               note=str(one.pk), verdict="useful", project="", reason="it was"),
        _doing("feed-next", "look", after="", of=""),
        _doing("feed-rate", "look", one.pk, rating="3", draw=str(drawn.pk)),
        _doing("feed-act", "look", one.pk, "pin"),
        _doing("feed-act", "look", pinned.pk, "unpin"),
        _doing("feed-act", "look", one.pk, "forget"),
        _doing("feed-act", "decide", one.pk, "retire", reason="not so"),
    ]  # fmt: skip


def _of_holds(alice: Principal) -> list[Doing]:
    pairs = [
        verdict(
            note(alice, f"The {machine} has nine disks.", when=at(days=1)),
            note(alice, f"The {machine} has eight disks."),
        )
        for machine in ("server", "mirror")
    ]
    one, other = pairs
    holds.reject(other.pk, by=alice, now=at(days=2))
    words = {"title": "Disks", "content": "The server has ten disks."}
    seen = {"seen": "0", "then": "same", "reason": "as I saw it"}
    return [
        _doing("review-decide", "decide", one.pk, "approve", **seen),
        _doing("review-decide", "decide", one.pk, "reject", **seen),
        _doing("review-decide", "decide", other.pk, "undo", then="same", seen="", reason="oh"),
        _doing("review-edit", "decide", one.pk, **words, **seen),
        _doing("review-bulk", "decide",
               verb="approve", chosen=f"{one.pk}:0", sure="1", reason="all of them"),
    ]  # fmt: skip


def _of_rejections(alice: Principal) -> list[Doing]:
    unit = episode(alice, SAID, session="refused")
    candidate = {"title": "Queue", "content": QUOTE, "source_ref": QUOTE.lower()}
    one, other = (
        GateRejection.objects.create(
            owner=alice, episode=unit, reason="grounding", candidate=candidate
        )
        for _ in range(2)
    )
    rejections.confirm(other.pk, by=alice, now=at(days=1))
    wordless = forbid("The queue is in a file.", owner=alice, by=alice, now=at(days=1))
    first = unit.turns.order_by("position").values_list("raw_item_id", flat=True)[1]
    return [
        _doing("rejection-decide", "decide", one.pk, "accept", quote=QUOTE, item=str(first),
               title="The queue", reason="it says so", at=""),
        _doing("rejection-decide", "decide", one.pk, "confirm", reason="no", at="page"),
        _doing("rejection-decide", "decide", one.pk, "forbid", reason="never", at=""),
        _doing("rejection-decide", "decide", other.pk, "undo", reason="oh", at=""),
        _doing("rejection-lift", "decide", wordless.pk, reason="it is there"),
    ]  # fmt: skip


def _of_units(alice: Principal) -> list[Doing]:
    parked, _ = many(alice, "embed", "bad vector", 2)
    # A unit is named by what was said in it.
    plain = episode(alice, SAID[:2], session="plain")
    asked = episode(alice, SAID[2:], session="asked")
    Episode.objects.as_pipeline().update(distilled_at=at(days=1))
    proposal = Proposal.objects.create(owner=alice, unit=asked.unit_key, principal=alice)
    seen = changes(proposal, now=at(days=2)).seen
    run = StageRun.objects.create(stage="embed", status="waiting")
    which = {"proposal": str(proposal.pk)}
    return [
        _doing("parked-release", "operate", parked.pk, reason="mended"),
        _doing("parked-dismiss", "operate", parked.pk, back="", reason="let it be"),
        _doing("parked-release-all", "operate", like=str(parked.pk), stage="1", sure="1",
               reason="mended"),
        _doing("episode-redistill", "decide", plain.pk),
        _doing("episode-apply", "decide", asked.pk, **which, seen=seen),
        _doing("episode-drop", "decide", asked.pk, **which),
        _doing("run-start", "operate", "dedup"),
        _doing("run-cancel", "operate", run.pk),
    ]  # fmt: skip


def _of_projects(alice: Principal) -> list[Doing]:
    shop, till, dock = (project(name) for name in ("shop", "till", "dock"))
    how = {"by": alice, "now": at()}
    projects.add_alias(shop.pk, "store", **how)  # type: ignore[arg-type]
    projects.add_path(shop.pk, "/home/alice/src/till", **how)  # type: ignore[arg-type]
    projects.merge(dock.pk, shop.pk, **how)  # type: ignore[arg-type]
    alias, path = ProjectAlias.objects.get(name="store"), PathRule.objects.latest("pk")
    why = {"reason": "one house"}
    return [
        _doing("project-change", "operate", shop.pk, "alias-add", name="kiosk", **why),
        _doing("project-change", "operate", shop.pk, "alias-remove", id=str(alias.pk), **why),
        _doing("project-change", "operate", shop.pk, "path-add", folder="/srv/shop", **why),
        _doing("project-change", "operate", shop.pk, "path-remove", id=str(path.pk), **why),
        _doing("project-change", "decide", till.pk, "merge", into="shop", **why),
        _doing("project-change", "decide", dock.pk, "unmerge", **why),
    ]


def _of_the_rest(alice: Principal) -> list[Doing]:
    wishes = ("fix the flaky upload test in uploader.py", "rename the old table in orders.sql")
    for number, wish in enumerate(wishes):
        said(alice, [f"Please {wish}."], session=f"wish {number}")
    track(clock=clock(at(days=1)))
    wanted, done = TaskItem.objects.as_pipeline().order_by("pk").values_list("pk", flat=True)
    tasks.decide(done, "confirm", by=alice, now=at(days=2))
    create_key(owner=alice.name, scopes=["recall"])
    key = AccessKey.objects.latest("pk")
    return [
        _doing("task-decide", "decide", wanted, "confirm", seen="0", reason="I saw it"),
        _doing("task-decide", "decide", done, "deny", seen="", reason="it is not"),
        _doing("task-decide", "decide", done, "reopen", seen="", reason="it fails again"),
        _doing("key-make", "operate", name="laptop", scope="recall"),
        _doing("key-revoke", "operate", key.pk, reason="lost"),
        _doing("floors-save", "decide", note_relevance="15", instead_of="", again="",
               reason="too loud"),
    ]  # fmt: skip
