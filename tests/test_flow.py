"""One session from POST /capture to the text before an agent and to a file in the vault, with every
audit row on the way.

Through the doors alone, as a hook and a worker use them; the rows are read as an auditor would.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from exporter.models import ExportedFile
from exporter.place import Place, around_vault
from memory.access import create_key, principal
from memory.files import capture_files
from memory.models import (
    Attribution,
    CaptureReceipt,
    Claim,
    DedupVerdict,
    DistillFailure,
    Emission,
    Episode,
    Evidence,
    GateRejection,
    Injection,
    LlmCall,
    Note,
    Principal,
    RawItem,
    SegmentCheck,
    StageRun,
    TurnVector,
)
from memory.pipeline import PIPELINE
from memory.text import region
from memory.text.fence import MARK

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)

TURNS = [
    ("user", "Which port should the harbor staging database listen on? Production uses 5432."),
    ("assistant", "The harbor staging database must listen on port 5433, production uses 5432."),
    ("user", "Good. Remember: never run migrations on Friday, always wait until Monday morning."),
    ("assistant", "I decided to keep the runner in scripts/migrate.py, it needs HARBOR_ENV."),
    ("assistant", "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}"),
    ("user", "The password for staging is in the vault: ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
]  # fmt: skip


def item(n: int, role: str, body: str) -> dict[str, Any]:
    return {
        "source": "claude-code",
        "kind": "turn",
        "role": role,
        "body": body,
        "session": "flow-1",
        "cwd": "/home/dev/src/harbor",
        "record_id": f"00000000-0000-0000-0000-{n:012d}",
        "original_timestamp": (START + timedelta(minutes=n)).isoformat(),
        "metadata": {"host": "laptop", "branch": "main"},
    }


def post(client: Client, path: str, body: Any = None) -> dict[str, Any]:
    answer = client.post(path, json.dumps(body or {}), content_type="application/json")
    assert answer.status_code in (200, 201), answer.content
    got: dict[str, Any] = answer.json()
    return got


def test_it_takes_a_session_from_capture_to_recall_and_the_vault_and_leaves_every_row(
    clone_db: str, tmp_path: Path
) -> None:
    key, row = create_key(owner="alice", scopes=["capture", "recall", "operate"])
    client = Client(headers={"authorization": f"Bearer {key}"})
    alice = principal("alice")
    items = [item(n, role, body) for n, (role, body) in enumerate(TURNS)]
    batch = {
        "items": items,
        "session_end": {"session": "flow-1", "reason": "exit"},
        "range": {"seen": 9, "filtered": 3, "posted": 6},
    }

    captured = post(client, "/capture", batch)
    assert (captured["stored"], captured["duplicates"]) == (5, 0)
    assert captured["refused"] == {"poison": 1}
    receipt = CaptureReceipt.objects.as_pipeline().get(pk=captured["receipt"])
    assert (receipt.owner, receipt.key, receipt.seen, receipt.stored) == (alice, row, 6, 5)
    assert receipt.client_range == batch["range"] and receipt.session_end == batch["session_end"]
    assert [refusal["index"] for refusal in receipt.refusals] == [4]
    assert sum(receipt.redacted.values()) == 1
    bodies = RawItem.objects.visible_to(alice).values_list("body", flat=True)
    assert not any("ghp_" in body for body in bodies)

    again = post(client, "/capture", batch)
    assert (again["stored"], again["duplicates"]) == (0, 5)
    assert [one.get("id") for one in again["items"]] == [one.get("id") for one in captured["items"]]

    processed = post(client, "/process")
    assert processed["ok"], processed
    runs = {run.stage: run for run in StageRun.objects.order_by("pk")}
    assert list(runs) == [verb.__name__ for verb in PIPELINE]
    for name, run in runs.items():
        assert run.status == "done" and run.trigger_source == "api" and run.finished_at
        assert run.report == processed[name]
    assert processed["segment"]["episodes"] == processed["distill"]["episodes_distilled"] == 1
    assert processed["distill"]["notes_created"] == processed["embed"]["embedded"] >= 2

    live = _learned(alice, runs, processed)

    recalled = post(
        client, "/recall/notes",
        {"query": "Which port does the harbor staging database listen on?",
         "cwd": "/home/dev/src/harbor", "session": "flow-2"},
    )  # fmt: skip
    assert recalled["outcome"] == "injected" and "5433" in recalled["text"]
    assert MARK in recalled["text"]
    injection = Injection.objects.as_pipeline().get(pk=recalled["injection"])
    assert (injection.owner, injection.session, injection.outcome) == (alice, "flow-2", "injected")
    assert [str(pk) for pk in injection.note_ids] == [note["id"] for note in recalled["notes"]]
    emission = Emission.objects.get(reference=str(injection.pk))
    assert (emission.kind, emission.owner) == ("recall", alice)

    echo = item(90, "user", recalled["text"]) | {"session": "flow-2"}
    assert post(client, "/capture", echo)["refused"] == "derived"

    quiet = post(client, "/process")
    assert quiet["distill"]["notes_created"] == quiet["dedup"].get("distinct", 0) == 0
    assert StageRun.objects.count() == 2 * len(PIPELINE)

    vault = tmp_path / "Vault"
    with around_vault(Place(vault, "alice")):
        _to_the_vault(client, vault, alice, live)


def _learned(alice: Principal, runs: dict[str, StageRun], processed: dict[str, Any]) -> list[Note]:
    """The episode of the session, and its notes with every row that they leave."""
    episode = Episode.objects.visible_to(alice).get()
    assert (episode.turn_count, episode.boundary_reason, episode.session) == (
        5,
        "session_end",
        "flow-1",
    )
    assert episode.run == runs["segment"] and episode.distilled_at
    assert set(SegmentCheck.objects.values_list("check_kind", flat=True)) >= {"size", "gap"}
    attribution = Attribution.objects.get(episode=episode)
    assert attribution.project is not None and attribution.project.name == "harbor"
    assert attribution.method == "basename" and not attribution.cwd_mismatch
    assert TurnVector.objects.count() == 5

    live = list(Note.objects.visible_to(alice).filter(deleted_at__isnull=True))
    assert live and {note.run for note in live} == {runs["distill"]}
    for note in live:
        assert note.embedding is not None and note.embedding_model and note.embedded_at
        edge = Evidence.objects.select_related("raw_item").get(note=note)
        assert edge.raw_item is not None
        assert edge.raw_item.body[edge.start : edge.end] == edge.quote
        assert note.valid_from == edge.raw_item.occurred_at < note.created_at
        assert DedupVerdict.objects.as_pipeline().get(note=note).run == runs["dedup"]
    ports = {(call.port, call.outcome) for call in LlmCall.objects.exclude(stage="recall")}
    assert ports >= {("distill", "ok"), ("embed", "ok")}
    assert {call.run_id for call in LlmCall.objects.all()} >= {runs["distill"].pk, runs["embed"].pk}
    rejected = sum((processed["distill"]["rejected"] or {}).values())
    assert GateRejection.objects.as_pipeline().count() == rejected
    assert not DistillFailure.objects.exists()
    assert not Claim.objects.filter(lease_until__isnull=False).exists()
    return live


def _to_the_vault(client: Client, vault: Path, alice: Principal, live: list[Note]) -> None:
    """The notes as files, the rows of each, a person's words below one, and those back again."""
    exported = post(client, "/export")
    run = StageRun.objects.get(stage="export")
    assert (run.status, run.trigger_source) == ("done", "api")
    assert run.report["written"] == exported["written"] == len(list(vault.rglob("*.md")))
    rows = {row.note_id: row for row in ExportedFile.objects.visible_to(alice).filter(kind="note")}
    assert set(rows) == {note.pk for note in live}
    for note in live:
        row = rows[note.pk]
        assert (row.action, row.run, row.owner) == ("written", run, alice)
        managed, own = region.split((vault / row.path).read_bytes())
        assert (own, row.sha256, row.size) == (
            b"", hashlib.sha256(managed).hexdigest(), len(managed),
        )  # fmt: skip
        face = yaml.safe_load(region.front(managed) or b"")
        assert (face["argus_id"], face["project"], face["level"]) == (
            str(note.pk),
            "harbor",
            "note",
        )
        assert (face["evidence"], face["aliases"]) == (1, [note.title])
        emitted = Emission.objects.get(kind="vault", reference=str(note.pk))
        assert emitted.owner == alice
        # The file itself does not come back, whichever way it takes.
        told = {"source": "api", "kind": "document", "body": managed.decode()}
        assert post(client, "/capture", told)["refused"] == "derived"
        told["body"] = managed.decode().split("---", 2)[2]
        assert post(client, "/capture", told)["refused"] == "derived"

    again = post(client, "/export")
    assert (again["written"], again["unchanged"]) == (0, exported["written"])
    assert ExportedFile.objects.visible_to(alice).count() == exported["written"]
    assert Emission.objects.filter(kind="vault").count() == len(live)

    path = vault / rows[live[0].pk].path
    with path.open("a") as handle:
        handle.write("\nThe harbor staging database moved to host db7 in June.\n")
    tally = capture_files([vault], owner=alice)
    assert (tally.stored, tally.refused) == (1, {"derived": exported["written"]})
    item = RawItem.objects.visible_to(alice).get(source="vault")
    assert (item.kind, item.metadata["argus_id"]) == ("synthesis", str(live[0].pk))
    assert item.project is not None and item.project.name == "harbor"
    assert post(client, "/process")["distill"]["items_distilled"] == 1
    learned = Note.objects.visible_to(alice).get(evidence__raw_item=item)
    assert "db7" in learned.content
    report = post(client, "/export")
    assert report["conflicts"] == 0
    assert path.read_text().endswith("moved to host db7 in June.\n")
    assert ExportedFile.objects.visible_to(alice).filter(note=learned).exists()


@pytest.mark.django_db
def test_it_leaves_a_receipt_also_when_nothing_is_stored() -> None:
    key, _ = create_key(owner="alice", scopes=["capture"])
    client = Client(headers={"authorization": f"Bearer {key}"})
    reply = post(client, "/capture", {"items": [item(1, "user", "  ")]})
    assert reply["stored"] == 0 and reply["refused"] == {"empty": 1}
    assert (
        CaptureReceipt.objects.as_pipeline().get(pk=reply["receipt"]).refusals[0]["reason"]
        == "empty"
    )
