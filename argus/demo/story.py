"""The demo's walk: the bundled files through the real verbs, then four recalls, then the rows.

Reads and writes what the verbs do, for one principal. Verify: `Story.checks`, relations between
rows that hold whatever the distiller of the day says. Knows nothing about how it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from argus import postgres
from argus.demo import rows
from argus.demo.script import Scripted, prepared
from memory.access import principal
from memory.claims import CONTENT_FAILURES_MAX
from memory.files import FileTally, capture_files
from memory.llm.choice import around_distiller
from memory.models import Principal
from memory.models.note import VERDICTS
from memory.stages.dedup import dedup
from memory.stages.distill import distill
from memory.stages.embed import embed
from memory.stages.segment import segment
from recall.context import Context, recall_context
from recall.notes import Recalled, recall_notes

#: Who owns the demo's rows: never the operator, whose record would keep a made-up story for ever.
OWNER = "demo"

#: Notes of the distill table.
NOTES_SHOWN = 8

HARBOR, TIDEPOOL = "/home/dev/src/harbor", "/home/dev/src/tidepool"

#: One prompt for each fate: answered, refused by a gate, silent below the floor.
ASKED = (
    "Which PostgreSQL version does the staging database use, and on which port?",
    "ok, go on",
    "How do I bake sourdough bread at home in a cast iron pot?",
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
            "files": self.files,
            **self.rows,
            "recalls": [{"prompt": prompt, **r.as_json()} for prompt, r in self.recalls],
            "context": self.context.as_json(),
        }


def play() -> Story:
    """Capture, process, recall, count. A second run stores nothing and asks again."""
    folder = Path(settings.BASE_DIR) / "tests" / "fixtures"
    owner = principal(OWNER)
    before = rows.last_run()
    tally = capture_files([folder / "demo"], owner=owner)
    _process(folder / "demo-replies", owner)
    recalls = tuple(
        (prompt, recall_notes(prompt, principal=owner, now=timezone.now(), cwd=HARBOR))
        for prompt in ASKED
    )
    context = recall_context(principal=owner, now=timezone.now(), cwd=TIDEPOOL)
    counted: dict[str, Any] = {
        "capture": rows.capture(owner),
        "segment": rows.segment(owner),
        "distill": rows.distill(owner, NOTES_SHOWN),
        "embed": rows.embed(owner),
        "dedup": rows.dedup(owner),
        "recall": rows.recall(owner),
        "runs": rows.runs(before),
    }
    return Story(
        owner.name, place(), tally.as_json(), counted, recalls, context, _checks(counted, tally)
    )


def place() -> str:
    """Where the rows lie, for a person; never with a password."""
    if settings.ARGUS.embedded:
        return str(postgres.start(settings.ARGUS.home).root)
    return f"the database {connection.settings_dict['NAME']} of ARGUS_DATABASE_URL"


def _process(replies: Path, owner: Principal) -> None:
    """The stages in their order. The prepared reply that cannot be read is tried until parked."""
    scripted = prepared(replies, owner)
    # Why once with a model: its own failures are not the demo's to repeat.
    tries = 1 if settings.ARGUS.model_url else CONTENT_FAILURES_MAX
    segment(trigger="demo")
    with around_distiller(lambda inner: Scripted(inner, scripted)):
        for _ in range(tries):
            if not distill(trigger="demo").content_failures:
                break
    embed(trigger="demo")
    dedup(trigger="demo")


def _checks(counted: dict[str, Any], tally: FileTally) -> dict[str, bool]:
    """Relations between rows; pure."""
    record, notes, verdicts = counted["capture"], counted["distill"], counted["dedup"]
    refused = sum(record["refused"].values())
    applied = {one["verdict"] for one in verdicts["kinds"] if one["status"] != "pending"}
    outcomes = counted["recall"]["outcomes"]
    return {
        "stored + duplicates + refused = seen": record["stored"] + record["duplicates"] + refused
        == record["seen"],
        "what the receipts stored is in the record": record["stored"] == record["raw_items"],
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
        "one prompt was met with silence": outcomes.get("below_floor", 0)
        + outcomes.get("no_hits", 0)
        > 0,
    }
