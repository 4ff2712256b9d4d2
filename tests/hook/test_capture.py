"""The verb capture, as the clients run it, against the real server."""

from __future__ import annotations

import json
import sys
import time

import pytest

from argus.hook.claude import wanted
from tests.hook.ground import HANG_SECONDS, Home, Toll, running, settled, wait_until
from tests.hook.talks import Talk, stored

pytestmark = pytest.mark.usefixtures("clone_db")

CLIENTS = ("claude", "codex", "pi")
STOP = {"claude": "Stop", "codex": "Stop", "pi": "agent_end"}


@pytest.mark.parametrize("client", CLIENTS)
def test_it_stores_what_was_said_once_and_in_order(wired: Home, client: str) -> None:
    talk = Talk(client, wired.path).say("Where is the deploy script?", "In tools/deploy.sh.")
    done = wired.run("capture", "--client", client, stdin=talk.event(STOP[client]))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    wait_until(lambda: len(stored()) == 2, "both turns are stored")

    talk.say("Does it need anything?", "FOO=1.")
    wired.run("capture", "--client", client, stdin=talk.event(STOP[client]))
    wait_until(lambda: len(stored()) == 4, "the new turns are stored")
    assert stored() == talk.turns


def test_it_returns_at_once_whatever_the_server_does(wired: Home, toll: Toll) -> None:
    toll.mode = "hang"
    talk = Talk("claude", wired.path).say("A question.", "An answer.")
    started = time.monotonic()
    done = wired.run("capture", "--client", "claude", stdin=talk.event("SessionEnd"))
    # It would hang as long as its child: half a minute for each post.
    assert time.monotonic() - started < HANG_SECONDS
    assert running(wired)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("mode", ["off", "status", "html", "cut", "lose", "slow"])
def test_it_is_silent_and_stores_in_the_end_whatever_the_server_does(
    wired: Home, toll: Toll, mode: str
) -> None:
    talk = Talk("claude", wired.path).say("A question.", "An answer.")
    toll.mode, toll.seconds = mode, 3.0
    if mode == "off":
        toll.close()
    for name in ("Stop", "SessionEnd"):
        done = wired.run("capture", "--client", "claude", stdin=talk.event(name))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    spool = wired.argus / "hook" / "spool"
    wait_until(lambda: bool(stored()) or any(spool.glob("*.post")), "it was sent or kept")
    toll.mode = "pass"
    if mode == "off":
        toll.open()
    # The session is over; another one begins and sends what waits.
    other = Talk("claude", wired.path)
    wait_until(lambda: shut_is_over(wired), "the server may be asked again")
    wired.run("context", "--client", "claude", stdin=other.event("SessionStart", source="startup"))
    wait_until(lambda: stored() == talk.turns, "both turns are stored")


def shut_is_over(home: Home) -> bool:
    path = home.argus / "hook" / "shut.json"
    return not path.exists() or json.loads(path.read_text())["until"] < time.time()


def test_it_tells_the_next_hook_once_that_the_key_is_refused(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("A question.", "An answer.")
    toll.mode, toll.status = "status", 401
    troubles = wired.argus / "hook" / "troubles"
    wired.run("capture", "--client", "claude", stdin=talk.event("Stop"))
    wait_until(troubles.exists, "the child passed its trouble on")
    said = [
        wired.run("capture", "--client", "claude", stdin=talk.event("Stop")).stderr
        for _ in range(3)
    ]
    assert [line.count("key") > 0 for line in said] == [True, False, False]
    assert "argus_" not in said[0]


def test_it_says_that_there_is_no_key(home: Home) -> None:
    talk = Talk("claude", home.path).say("A question.", "An answer.")
    said = [home.run("capture", "--client", "claude", stdin=talk.event("Stop")) for _ in range(2)]
    assert "no key" in said[0].stderr
    assert said[1].stderr == ""
    assert [done.returncode for done in said] == [0, 0]


def test_it_sends_nothing_to_an_address_that_a_repository_could_set(
    wired: Home, toll: Toll
) -> None:
    thief = Toll(toll.server)
    thief.open()
    talk = Talk("claude", wired.path).say("A question.", "An answer.")
    extra = {"ARGUS_URL": thief.url, "ARGUS_KEY": "theirs", "ARGUS_HOME": str(wired.path)}
    wired.run("capture", "--client", "claude", stdin=talk.event("Stop"), extra=extra)
    wait_until(lambda: stored() == talk.turns, "both turns are stored")
    assert thief.requests == []
    thief.close()


def test_it_leaves_to_the_settings_what_a_plugin_tells_as_well(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("A question.", "An answer.")
    config = wired.path / ".claude"
    hooks = wanted(sys.executable, str(wired.script), subagents=False)
    ours = {name: [{"hooks": [hooks[name]]}] for name in ("Stop", "SessionEnd")}
    (config / "settings.json").write_text(json.dumps({"hooks": ours}))
    arguments = ("capture", "--client", "claude", "--via", "plugin")
    wired.run(*arguments, stdin=talk.event("Stop"))
    settled(wired)
    assert toll.requests == []
    # Only what they hold.
    del ours["Stop"]
    (config / "settings.json").write_text(json.dumps({"hooks": ours}))
    wired.run(*arguments, stdin=talk.event("Stop"))
    wait_until(lambda: stored() == talk.turns, "both turns are stored")


@pytest.mark.parametrize("stdin", ["", "{", "[]", '"x"', "{}", '{"session_id": 7}', b"\xff\xfe"])
def test_it_does_nothing_about_what_is_no_event(wired: Home, toll: Toll, stdin: object) -> None:
    done = wired.run("capture", "--client", "claude", stdin=stdin)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    settled(wired)
    assert toll.requests == []


def test_it_leaves_no_child_behind(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("A question.", "An answer.")
    wired.run("capture", "--client", "claude", stdin=talk.event("Stop"))
    wait_until(lambda: stored() == talk.turns, "both turns are stored")
    wait_until(lambda: not running(wired), "the child is gone")
