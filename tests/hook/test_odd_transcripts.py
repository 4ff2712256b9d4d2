"""What went wrong with other memories, by kind: transcripts that are cut, moved and strange."""

from __future__ import annotations

import json
import os

import pytest

from tests.hook.ground import Home, Toll
from tests.hook.talks import Talk, load, look_around, stored, tend

pytestmark = pytest.mark.usefixtures("here")

CLIENTS = ("claude", "codex", "pi")


@pytest.fixture
def here(wired: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(wired.path))


@pytest.mark.parametrize("client", CLIENTS)
def test_it_waits_for_the_rest_of_a_line_cut_inside_a_sign(wired: Home, client: str) -> None:
    talk = Talk(client, wired.path).say("Deploy it 🚀 now.")
    data = talk.data()
    cut = data.index("🚀".encode()) + 2
    talk.path.write_bytes(data[:cut])
    tend(talk)
    assert stored() == []
    assert load(talk).spooled == data.rfind(b"\n", 0, cut) + 1

    talk.write()
    tend(talk)
    assert stored() == talk.turns


@pytest.mark.parametrize("client", CLIENTS)
def test_it_starts_over_when_the_file_shrank(wired: Home, client: str) -> None:
    talk = Talk(client, wired.path).say("One.", "Two.", "Three.", "Four.")
    tend(talk)
    os.truncate(talk.path, 100)
    tend(talk)
    talk.write().say("Five.")
    tend(talk)
    assert stored() == talk.turns


def test_it_counts_real_bytes_of_lines_that_end_as_on_windows(wired: Home) -> None:
    talk = Talk("claude", wired.path)
    for words in ("One.", "Two.", "Three."):
        talk.say(words)
        talk.path.write_bytes(talk.data().replace(b"\n", b"  \r\n"))
        tend(talk)
        assert load(talk).offset == talk.path.stat().st_size
    assert stored() == talk.turns


@pytest.mark.parametrize("client", CLIENTS)
def test_it_keeps_signs_that_break_lines_elsewhere(wired: Home, client: str) -> None:
    talk = Talk(client, wired.path).say("a\u2028b\u2029c\u0085d\u000be\u000cf", "Seen.")
    tend(talk)
    assert stored() == talk.turns


def test_it_follows_a_rollout_that_was_archived(wired: Home, toll: Toll) -> None:
    talk = Talk("codex", wired.path).say("One.", "Two.")
    tend(talk)
    archive = wired.path / ".codex" / "archived_sessions"
    archive.mkdir()
    told = talk.event("Stop")
    talk.path = talk.path.rename(archive / talk.path.name)
    talk.say("Three.", "Four.")
    posts = len(toll.posted())
    # The client still tells the old path.
    tend(talk, transcript_path=told["transcript_path"])
    assert stored() == talk.turns
    assert sum(len(post["items"]) for post in toll.posted()[posts:]) == 2


def test_it_follows_a_session_into_the_folder_of_a_worktree(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    tend(talk)
    folder = talk.path.parent.with_name("-work-shop--claude-worktrees-x")
    folder.mkdir()
    talk.path = talk.path.rename(folder / talk.path.name)
    talk.say("Three.")
    gone = folder.with_name("-never-there") / talk.path.name
    tend(talk, transcript_path=str(gone))
    assert stored() == talk.turns


@pytest.mark.parametrize("client", CLIENTS)
def test_it_stores_a_history_once_that_a_fork_copied(wired: Home, client: str) -> None:
    talk = Talk(client, wired.path).say("One.", "Two.")
    tend(talk)
    if client == "codex":
        # Forks of today name the history and do not copy it.
        fork = Talk(client, wired.path)
        fork.turns = list(talk.turns)
    else:
        fork = Talk(client, wired.path)
        fork.rows = [
            {**row, **({"sessionId": fork.session} if client == "claude" else {})}
            for row in talk.rows
        ]
        if client == "pi":
            fork.rows[0] = {**fork.rows[0], "id": fork.session}
        fork.turns = list(talk.turns)
    fork.say("Three.", "Four.")
    # At its start a fork goes by the name of the session that it came from.
    look_around(talk)
    tend(fork)
    assert stored() == fork.turns


def test_it_stores_a_session_once_that_pi_rewrote_with_new_ids(wired: Home) -> None:
    talk = Talk("pi", wired.path).say("One.", "Two.")
    tend(talk)
    talk.rows = [
        {**row, **({"id": "new" + row["id"]} if "message" in row else {})} for row in talk.rows
    ]
    talk.path.write_bytes(talk.data())
    tend(talk)
    talk.say("Three.")
    tend(talk)
    assert stored() == talk.turns


def test_it_tells_broken_lines_with_their_numbers(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("One.")
    with talk.path.open("ab") as handle:
        handle.write(b'{"broken": \n{"a":1}{"b":2}\n{"type":"user","x":"\x01\n')
    held = talk.path.read_bytes()
    talk.path.write_bytes(held + talk.say("Two.").data()[len(held) :])
    row = talk._row("assistant", "Two.")[0]
    talk.path.write_bytes(held + json.dumps(row).encode() + b"\n")
    tend(talk)
    assert stored() == talk.turns
    misses = [one["detail"] for post in toll.posted() for one in post.get("misses", [])]
    assert [detail.split(":")[0] for detail in misses] == ["line 2", "line 3", "line 4"]
    assert toll.posted()[0]["range"]["reasons"]["bad_line"] == 3


def test_it_leaves_an_item_out_that_is_larger_than_the_server_takes(
    wired: Home, toll: Toll
) -> None:
    talk = Talk("claude", wired.path).say("One.", "x" * 1_200_000, "Three.")
    tend(talk)
    assert stored() == [talk.turns[0], talk.turns[2]]
    assert toll.posted()[0]["range"]["reasons"] == {"oversized": 1}
    asked = len(toll.requests)
    tend(talk)
    assert len(toll.requests) == asked


def test_it_does_not_store_poison_and_what_was_injected(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("One.", "Two.")
    base = {**talk.rows[-1], "uuid": "p1"}
    injected = {"type": "hook_additional_context", "content": ["<memory>old</memory>"]}
    error = [{"type": "text", "text": "API Error: 529 overloaded"}]
    talk.rows += [
        {**base, "uuid": "p1", "isApiErrorMessage": True, "message": {"content": error}},
        {**base, "uuid": "p2", "type": "attachment", "attachment": injected},
        {"type": "queue-operation", "operation": "enqueue", "content": "Twice.", "sessionId": "x"},
        {**base, "uuid": "p3", "type": "user", "isCompactSummary": True},
        {**base, "uuid": "p4", "isSidechain": True},
    ]
    talk.write()
    tend(talk)
    assert stored() == talk.turns
