"""The verb context as a client runs it when a session starts."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from memory.access import principal
from memory.models import Injection
from tests.hook.ground import Home, Toll
from tests.ports import free_port
from tests.recall.making import note

FACT = "Releases are cut on Thursdays from the branch called train."


def start(home: Home, **more: object) -> dict[str, object]:
    return {
        "session_id": "s-1",
        "transcript_path": None,
        "cwd": str(home.path / "harbour"),
        "hook_event_name": "SessionStart",
        "source": "startup",
        **more,
    }


@pytest.fixture
def knowing(wired: Home) -> Home:
    """A wired home whose server knows one fact about the project `harbour`."""
    note(principal("me"), FACT, project="harbour")
    (wired.path / "harbour").mkdir()
    return wired


@pytest.mark.parametrize(
    ("client", "source"),
    [
        ("claude", "startup"),
        ("claude", "resume"),
        ("claude", "compact"),
        ("codex", "clear"),
        ("pi", "fork"),
    ],
)
def test_it_tells_a_session_what_it_should_know(knowing, client, source):
    done = knowing.run("context", "--client", client, stdin=start(knowing, source=source))
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    assert list(printed) == ["hookSpecificOutput"]
    assert printed["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert FACT in printed["hookSpecificOutput"]["additionalContext"]
    assert Injection.objects.as_pipeline().get(mode="context").session == "s-1"


def test_it_asks_with_where_it_is(knowing, toll: Toll):
    place = knowing.path / "harbour ü&x"
    (place / ".git").mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (place / ".argus.json").write_text('{"project": "harbour"}')
    assert FACT in knowing.run("context", stdin=start(knowing, cwd=str(place))).stdout
    (asked,) = [at for method, at, _ in toll.requests if method == "GET"]
    assert urlsplit(asked).path == "/recall/context"
    assert {name: value[0] for name, value in parse_qs(urlsplit(asked).query).items()} == {
        "cwd": str(place),
        "session": "s-1",
        "here": "harbour",
        "git_root": str(place),
        "git_common_dir": str(place / ".git"),
    }


def test_it_lets_the_session_start_when_nobody_listens(home: Home):
    home.env(ARGUS_URL=f"http://127.0.0.1:{free_port()}", ARGUS_KEY="k", ARGUS_CAPTURE="false")
    done = home.run("context", stdin=start(home))
    assert (done.returncode, done.stdout) == (0, "")
    row = json.loads((home.argus / "hook" / "skipped.jsonl").read_text())
    assert (row["mode"], row["reason"]) == ("context", "refused")


def test_it_marks_no_session_that_another_was_forked_from(home: Home):
    off = home.argus / "hook" / "sessions" / "claude" / "s-1.off"
    for source in ("resume", "fork", "compact"):
        home.run("context", stdin=start(home, source=source), extra={"ARGUS_DISABLED": "1"})
        assert not off.exists()
    home.run("context", stdin=start(home), extra={"ARGUS_DISABLED": "1"})
    assert off.exists()
