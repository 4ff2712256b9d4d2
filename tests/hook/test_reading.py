"""A transcript's stretch as batches: bounded, counted, cleansed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from argus.hook import reading
from argus.hook.reading import Batch, Gate, batches, begin, mark
from argus.hook.sessions import Session
from memory.transcripts.turns import text_hash
from tests.corpus import CORPUS
from tests.hook.talks import Talk

SAMPLES = CORPUS.parent / "realclients" / "samples"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def read(path: Path, client: str = "claude", session: Session | None = None) -> list[Batch]:
    session = session or Session(client, "s")
    with path.open("rb") as handle:
        start = begin(handle, session)
        return list(batches(handle, path.name, start, Gate(session)))


def items(found: list[Batch]) -> list[dict[str, Any]]:
    return [json.loads(item) for batch in found for item in batch.items]


def test_it_cuts_by_items_and_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH_ITEMS_MAX", 3)
    talk = Talk("claude", tmp_path).say(*(f"Turn {number}." for number in range(8)))
    found = read(talk.path)
    assert [len(batch.items) for batch in found] == [3, 3, 2]
    assert [batch.start for batch in found[1:]] == [batch.end for batch in found[:-1]]
    assert found[-1].end == talk.path.stat().st_size
    assert [item["body"] for item in items(found)] == [words for _, words in talk.turns]

    monkeypatch.setattr(reading, "BATCH_ITEMS_MAX", 100)
    monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 2000)
    found = read(talk.path)
    assert len(found) > 1
    assert max(batch.bytes for batch in found) <= 2000
    assert len(items(found)) == 8


@pytest.mark.parametrize("client", ["claude", "codex", "pi"])
@pytest.mark.parametrize("window", [1, 700, 5000])
def test_it_reads_the_same_through_a_window_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, window: int
) -> None:
    talk = Talk(client, tmp_path).say(*(f"Turn {number}: {'x' * 100}" for number in range(9)))
    whole = read(talk.path, client)
    monkeypatch.setattr(reading, "WINDOW_BYTES", window)
    monkeypatch.setattr(reading, "CODEX_WINDOW_BYTES", window)
    found = read(talk.path, client)
    known = {item["record_id"]: item for item in items(found)}
    assert list(known.values()) == items(whole)
    assert found[-1].end == whole[-1].end


@pytest.mark.parametrize("client", ["claude", "codex", "pi"])
def test_it_counts_every_line_once_as_filtered_or_posted(tmp_path: Path, client: str) -> None:
    talk = Talk(client, tmp_path).say("One.", "Two.", "<private>x</private>")
    with talk.path.open("ab") as handle:
        handle.write(b'{"broken\n\n{"type": "unheard of"}\n')
    counts = [batch.counts for batch in read(talk.path, client)]
    assert sum(c.seen for c in counts) == sum(c.filtered + c.posted for c in counts)
    assert sum(c.posted for c in counts) == 2
    assert sum(sum(c.reasons.values()) for c in counts) == sum(c.filtered for c in counts)
    reasons = counts[-1].reasons
    assert (reasons["bad_line"], reasons["private"]) == (1, 1)


def test_it_knows_a_file_that_is_another_one_now(tmp_path: Path) -> None:
    talk = Talk("claude", tmp_path).say(*(f"Turn {number}." for number in range(40)))
    size = talk.path.stat().st_size

    def start(session: Session) -> int:
        with talk.path.open("rb") as handle:
            return begin(handle, session)

    def known() -> Session:
        session = Session("claude", "s")
        with talk.path.open("rb") as handle:
            begin(handle, session)
            session.offset = session.spooled = size
            session.mark = session.spooled_mark = mark(handle, size)
        return session

    session = known()
    talk.say("More.")
    assert start(session) == size
    data = talk.path.read_bytes()
    talk.path.write_bytes(data[:-300] + b"y" * 300)
    assert start(known()) == size
    session = known()
    # In place, of the same length, in the middle.
    talk.path.write_bytes(data[:1000].replace(b"a", b"b") + data[1000:])
    assert start(session) == 0
    assert session.generation == 1
    session = known()
    os.truncate(talk.path, size - 1)
    assert start(session) == 0


def test_it_takes_secrets_out_of_every_text_of_an_item(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    talk = Talk("claude", tmp_path, cwd=f"/src/{secret}").say(f"Use {secret}.")
    talk.rows[0]["gitBranch"] = secret
    talk.path.write_bytes(talk.data())
    found = read(talk.path)
    assert secret not in found[0].items[0]
    assert sum(found[0].counts.redacted.values()) == 3


def test_it_names_a_turn_by_the_words_that_are_stored(tmp_path: Path) -> None:
    words = "My pin is <private>4711</private>, keep it."
    talk = Talk("pi", tmp_path).say(words)
    item = items(read(talk.path, "pi"))[0]
    assert item["body"] == "My pin is [private], keep it."
    # Whoever has the hash of the words could try ten thousand of them.
    assert text_hash(words) not in item["record_id"]
    assert text_hash(item["body"]) in item["record_id"]


def test_it_adds_what_git_knows_of_the_folder(tmp_path: Path) -> None:
    inner = tmp_path / "shop" / ".git"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "config").write_text('[remote "origin"]\n\turl = https://me:pw@host/shop.git\n')
    (tmp_path / "shop" / "deep").mkdir()
    talk = Talk("claude", tmp_path, cwd=str(tmp_path / "shop" / "deep")).say("One.")
    metadata = items(read(talk.path))[0]["metadata"]
    assert metadata["git_root"] == str(tmp_path / "shop")
    assert metadata["branch"] == "main"
    assert "pw" not in metadata["repo"]

    session = Session("claude", "s")
    with talk.path.open("rb") as handle:
        found = list(batches(handle, "x.jsonl", 0, Gate(session, live=False)))
    assert "branch" not in items(found)[0]["metadata"]


def test_it_stops_at_its_deadline_without_losing_its_place(tmp_path: Path) -> None:
    talk = Talk("claude", tmp_path).say("One.", "Two.")
    session = Session("claude", "s")
    with talk.path.open("rb") as handle:
        found = list(batches(handle, "x.jsonl", 0, Gate(session), deadline=0.0))
    assert [(batch.start, batch.end, batch.items) for batch in found] == [(0, 0, [])]


@pytest.mark.parametrize("client", ["claude", "codex", "pi"])
def test_it_reads_what_the_clients_of_today_write(client: str, tmp_path: Path) -> None:
    folder = SAMPLES / client / "resume3"
    if not folder.exists():
        folder = SAMPLES / client / "one"
    if not folder.exists():
        pytest.skip("no samples of real clients here")
    path = next(p for p in sorted(folder.glob("*.jsonl")) if p.name != "requests.jsonl")
    found = read(path, client)
    told = items(found)
    assert told
    assert {item["role"] for item in told} == {"user", "assistant"}
    assert found[-1].end == path.stat().st_size


def test_it_tells_once_that_rules_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    (folder / "deep").mkdir(parents=True)
    (folder / ".argus.json").write_text("{")
    talk = Talk("claude", tmp_path, cwd=str(folder)).say("One.", "Two.")
    talk.cwd = str(folder / "deep")
    talk.say("Three.", "Four.")
    assert items(read(talk.path)) == []
    log = (tmp_path / ".argus" / "log" / "argus-hook.log").read_text()
    assert len(log.splitlines()) == 1
