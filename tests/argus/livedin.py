"""A house in which people did everything that they may do, with a scripted model.

Knows nothing about what is asked of the house afterwards.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from argus.undo import undo_run
from memory import edits, keeping, projects, redistill
from memory.models import DedupVerdict, Episode, GateRejection, Note, RawItem, StageRun
from memory.stages.dedup import dedup
from memory.stages.distill import distill
from memory.stages.embed import embed
from memory.stages.segment import segment
from recall.notes import recall_notes
from review import holds, rejections
from review.grounding import Words
from tests.factories import clock, document, end_session, project, three, turns
from tests.openai_server import CHAT, OpenAIServer, Request, Step, behave, note, notes, says

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
