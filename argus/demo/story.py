"""The demo's walk: the bundled files through the real verbs, four recalls, a vault, then the rows.

Reads and writes what the verbs do, for one principal. Verify: `Story.checks`, relations between
rows that hold whatever the distiller of the day says. Knows nothing about how it is printed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from argus import postgres
from argus.demo import rows
from argus.demo.script import MADE_UP, Prepared, prepared
from exporter.export import export
from exporter.place import Place, around_vault
from memory import people
from memory.access import principal
from memory.claims import CONTENT_FAILURES_MAX
from memory.files import FileTally, capture_files
from memory.llm.choice import answering
from memory.models import GateRejection, Principal
from memory.models.note import VERDICTS
from memory.stages.dedup import dedup
from memory.stages.distill import distill
from memory.stages.embed import embed
from memory.stages.segment import segment
from memory.stages.track import track
from recall.context import Context, recall_context
from recall.notes import Recalled, recall_notes
from review import rejections

#: Who owns the demo's rows: never the operator, whose record would keep a made-up story for ever.
OWNER = "demo"

#: Who may look at the demo's pages, as its owner.
VISITOR, VISITOR_ROLES = "demo", ("reviewer", "operator")

#: Notes of the distill table, and files of the vault.
NOTES_SHOWN, FILES_SHOWN = 8, 8

#: The demo's vault, in ARGUS_HOME.
VAULT = "demo-vault"

HARBOR, TIDEPOOL = "/home/dev/src/harbor", "/home/dev/src/tidepool"

#: One prompt for each fate: answered, refused by a gate, silent below the floor.
ASKED = (
    "Which PostgreSQL version does the staging database use, and on which port?",
    "ok, go on",
    "How do I bake sourdough bread at home in a cast iron pot?",
)


#: Asked as well and not printed, so that the ledger's pages have something to show.
ALSO_ASKED = (
    "Which Node version must tidepool be built with?",
    "How long may a booking request take before it times out?",
    "How is seed data for harbor loaded?",
    "May I force-push to main?",
    "What caused the double bookings?",
    "On which port does Redis listen in harbor?",
    "When is the payment sandbox reset?",
    "What will the weather be in Lisbon tomorrow?",
)


@dataclass(frozen=True)
class Story:
    """What was read this time, what the rows say now, and the relations that must hold."""

    owner: str
    place: str
    files: dict[str, Any]
    rows: dict[str, Any]
    recalls: tuple[tuple[str, Recalled], ...]
    context: Context
    checks: dict[str, bool]
    #: The visitor's password, the one time that it is known.
    password: str = ""

    @property
    def ok(self) -> bool:
        return all(self.checks.values())

    def as_json(self) -> dict[str, Any]:
        """The whole story as one object."""
        return {
            "ok": self.ok,
            "checks": self.checks,
            "owner": self.owner,
            "place": self.place,
            "visitor": {"name": VISITOR, "password": self.password or None},
            "files": self.files,
            **self.rows,
            "recalls": [{"prompt": prompt, **r.as_json()} for prompt, r in self.recalls],
            "context": self.context.as_json(),
        }


def play(vault: Path | None = None) -> Story:
    """Capture, process, recall, export into `vault`, count. A second run stores nothing, asks again
    and writes no file. None: the demo's own vault, beside the data of Argus."""
    vault = vault or Path(settings.ARGUS.home) / VAULT
    folder = Path(settings.BASE_DIR) / "tests" / "fixtures"
    owner = principal(OWNER)
    before = rows.last_run()
    tally = capture_files([folder / "demo"], owner=owner)
    _process(folder / "demo-replies", owner)
    recalls = tuple(
        (prompt, recall_notes(prompt, principal=owner, now=timezone.now(), cwd=HARBOR))
        for prompt in ASKED
    )
    for prompt in ALSO_ASKED:
        recall_notes(prompt, principal=owner, now=timezone.now(), cwd=HARBOR, session="demo")
    context = recall_context(principal=owner, now=timezone.now(), cwd=TIDEPOOL)
    with around_vault(Place(vault, owner.name)):
        exported = asdict(export(trigger="demo"))
    counted: dict[str, Any] = {
        "capture": rows.capture(owner),
        "segment": rows.segment(owner),
        "distill": rows.distill(owner, NOTES_SHOWN),
        "embed": rows.embed(owner),
        "dedup": rows.dedup(owner),
        "track": rows.track(owner),
        "recall": rows.recall(owner),
        "export": rows.export(owner, vault, exported, FILES_SHOWN),
        "runs": rows.runs(before),
    }
    return Story(
        owner.name,
        place(),
        tally.as_json(),
        counted,
        recalls,
        context,
        _checks(counted, tally),
        _let_in(owner, now=timezone.now()),
    )


def _let_in(owner: Principal, *, now: datetime) -> str:
    """Let a visitor look at the pages as the demo's owner; the password, or "" when it is known."""
    if owner.user_id is not None or User.objects.filter(username=VISITOR, is_active=True).exists():
        return ""
    _, password = people.add(VISITOR, VISITOR_ROLES, by=owner, now=now, principal=owner.name)
    return password


def place() -> str:
    """Where the rows lie, for a person; never with a password."""
    if settings.ARGUS.embedded:
        return str(postgres.start(settings.ARGUS.home).root)
    return f"the database {connection.settings_dict['NAME']} of ARGUS_DATABASE_URL"


def _process(replies: Path, owner: Principal) -> None:
    """The stages in their order. The prepared reply that cannot be read is tried until parked, and
    after the first try a person has decided about what a model made up."""
    # Why once with a model: its own failures are not the demo's to repeat.
    tries = 1 if settings.ARGUS.model_url else CONTENT_FAILURES_MAX
    segment(trigger="demo")
    with answering(Prepared(prepared(replies, owner))):
        for _ in range(tries):
            failures = distill(trigger="demo").content_failures
            _forbid(owner, now=timezone.now())
            if not failures:
                break
    embed(trigger="demo")
    dedup(trigger="demo")
    track(trigger="demo")


def _forbid(owner: Principal, *, now: datetime) -> None:
    """What its owner says of the note that a model made up, where nobody decided about it yet."""
    rows = GateRejection.objects.visible_to(owner).filter(reason="grounding", decisions=None)
    for pk in list(rows.filter(candidate__content=MADE_UP).values_list("pk", flat=True)):
        rejections.forbid(pk, by=owner, now=now, reason="we asked about it and left it open")


def _checks(counted: dict[str, Any], tally: FileTally) -> dict[str, bool]:
    """Relations between rows; pure."""
    record, notes, verdicts = counted["capture"], counted["distill"], counted["dedup"]
    refused = sum(record["refused"].values())
    applied = {one["verdict"] for one in verdicts["kinds"] if one["status"] != "pending"}
    outcomes = counted["recall"]["outcomes"]
    return {
        "stored + duplicates + refused = seen": record["stored"] + record["duplicates"] + refused
        == record["seen"],
        "what the receipts stored is in the record": record["stored"] == record["captured"],
        "every file was read": not tally.bad_lines and not tally.unreadable,
        "secrets were redacted": bool(record["redacted"]),
        "every turn has its episode": counted["segment"]["turns"]
        == sum(source["turns"] for source in record["sources"]),
        "every quote is the span of its raw item": notes["unproved"] == 0,
        "every note and raw item can be found by its words": counted["embed"]["indexed"]
        == {"notes": notes["notes"], "raw_items": record["raw_items"]},
        "the gate refused something": bool(notes["rejected"]),
        "every kind of verdict was applied": applied == set(VERDICTS),
        "two supersessions waited for a person": verdicts["ever_held"] >= 2,
        "one prompt was answered": outcomes.get("injected", 0) > 0,
        "one prompt was refused by a gate": outcomes.get("gated", 0) > 0,
        "the vault has a file for each live note": not counted["export"]["missing"],
        "one prompt was met with silence": outcomes.get("below_floor", 0)
        + outcomes.get("no_hits", 0)
        > 0,
    }
