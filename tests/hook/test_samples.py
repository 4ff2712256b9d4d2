"""What the real clients told their hooks and wrote, played to the client event by event."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from argus.hook import capture, home, insurance, tending
from argus.hook.events import Event
from memory.models import CaptureReceipt, RawItem
from memory.transcripts import Turn, read
from tests.corpus import CORPUS
from tests.hook.ground import Home, Toll
from tests.hook.talks import look_around_as, stored

SAMPLES = CORPUS.parent / "realclients" / "samples"
CASES = sorted(
    path for client in ("claude", "codex", "pi") for path in (SAMPLES / client).glob("*")
    if (path / "relpath.txt").exists()
)  # fmt: skip


def lay(sample: Path, person: Path) -> list[Path]:
    """Put the transcripts of a sample where the client had them."""
    laid = []
    for line in (sample / "relpath.txt").read_text().splitlines():
        name, _, place = line.partition("\t")
        path = person / place
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(sample / name, path)
        laid.append(path)
    return laid


def told(sample: Path, person: Path) -> list[dict[str, object]]:
    """The stdin of every hook of a sample, in order, with the person's home in its paths."""
    found = []
    for path in sorted((sample / "hooks").glob("*.json"), key=lambda p: p.name.split("-", 2)[1]):
        stdin = json.loads(path.read_text()).get("stdin")
        if isinstance(stdin, dict):
            found.append(json.loads(json.dumps(stdin).replace("/home/dev", str(person))))
    return found


@pytest.mark.skipif(not CASES, reason="no samples of real clients here")
@pytest.mark.parametrize("sample", CASES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_it_stores_the_visible_turns_of_a_real_session_once(
    wired: Home, toll: Toll, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(wired.path))
    client = sample.parent.name
    paths = lay(sample, wired.path)
    settings = home.read_env()
    for stdin in told(sample, wired.path):
        event = Event(client, stdin)
        if capture._ours(event, settings):
            tending.tend(event, capture.find(event), settings)
    visible = {}
    for path in paths:
        for item in read(path, {"claude": "claude-code"}.get(client, client)):
            if isinstance(item, Turn):
                visible[item.record_id] = (item.role, item.body)
    # Another session starts later: what no event told of is found by it.
    (wired.argus / "hook").mkdir(exist_ok=True)
    (wired.argus / "hook" / "since").write_text("1.0")
    for _ in range(2):
        for path in paths:
            look_around_as(client, path, time.time() + insurance.IDLE_SECONDS)
    names = {item.record_id for item in RawItem.objects.as_pipeline()}
    assert sorted(stored()) == sorted(visible.values())
    assert names == set(visible)
    ranges = [row.client_range for row in CaptureReceipt.objects.as_pipeline() if row.client_range]
    assert all(one["seen"] == one["filtered"] + one["posted"] for one in ranges if "seen" in one)
