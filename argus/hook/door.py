"""The server's doors as a detached child uses them: what was taken, what was refused, who is away.

After a failure the door stays shut for a while, longer each time and as long as the server asked,
so that a server in trouble is not made worse. Knows nothing about transcripts.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

from argus.hook import home, wire
from argus.hook.tally import Tally
from argus.hook.trouble import pass_on
from argus.hook.wire import Away

#: Seconds for one post and for its connection.
# Why: nobody waits for a child; a busy server needs more than a prompt may.
POST_SECONDS, CONNECT_SECONDS = 30.0, 3.0

#: Seconds for which the door stays shut after a failure, doubled each time, and at most.
SHUT_SECONDS, SHUT_SECONDS_MAX = 2.0, 120.0
#: The longest wait that a server can ask for.
RETRY_AFTER_SECONDS_MAX = 3600.0

#: Answers by which the server says that this very body is at fault.
_REFUSED = (400, 413, 422)

#: Why the server is away by what it answers: the key, or a body that something on the way forbids.
_WHY = {401: "key", 403: "forbidden", 429: "busy"}
#: Reasons that may lie in the body that was sent, and not in the server.
_DOUBTFUL = ("http", "forbidden", "cut", "json", "timeout", "large")


class Refused(Exception):
    """The server takes this body neither now nor later: `status` and what it says."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status, self.detail = status, detail


def doubtful(away: Away) -> bool:
    """Whether the server may well take another body than the one that it failed at."""
    return away.why in _DOUBTFUL and not away.retry_after


class Door:
    """Where posts go, by the settings of `~/.argus/env`."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.url = settings.get("ARGUS_URL") or home.URL
        self.key = settings.get("ARGUS_KEY", "")
        #: The server failed at what is posted now again and again, and took other posts: a failure
        #: is taken for a refusal.
        self.stubborn = False
        #: What came of its posts.
        self.tally = Tally()

    @property
    def shut(self) -> float:
        """Seconds for which the door stays shut; 0 when it is open."""
        kept = _read()
        left = _number(kept.get("until")) - time.time()
        # A time too far ahead is a clock that was set back; other settings are another door.
        if kept.get("url") != self.url or left > RETRY_AFTER_SECONDS_MAX or left < 0:
            return 0.0
        try:
            if os.stat(home.place("env")).st_mtime > _number(kept.get("at")):
                return 0.0
        except OSError:
            pass
        return left

    def post(self, path: str, body: bytes, seconds: float = POST_SECONDS) -> dict[str, Any]:
        """The server's JSON. Raises Refused for this body, Away for everything else."""
        try:
            reply = self.ask(path, body, seconds)
        except Away as away:
            self.close(away)
            raise
        self.open()
        return reply

    def ask(self, path: str, body: bytes, seconds: float = POST_SECONDS) -> dict[str, Any]:
        """The same, and whatever comes is not held against the server."""
        if not self.key:
            raise Away("key", detail="no key in ~/.argus/env: run argus-hook install")
        answer = wire.request(
            self.url, "POST", path, self.key, body, seconds=seconds, connect=CONNECT_SECONDS
        )
        if answer.status in _REFUSED:
            raise Refused(answer.status, _detail(answer))
        if answer.status != 200:
            why = _WHY.get(answer.status, "http")
            raise Away(why, answer.retry_after, f"status {answer.status}: {_detail(answer)}")
        reply = answer.json()
        if not isinstance(reply, dict):
            raise Away("json", detail="the answer is no object")
        return reply

    def open(self) -> None:
        """The server answered: nothing is held against it."""
        with contextlib.suppress(OSError):
            os.unlink(_path())

    def close(self, away: Away) -> None:
        """Nobody posts for a while, longer each time."""
        tries = min(int(_number(_read().get("tries"))), 20)
        seconds = min(SHUT_SECONDS * 2**tries, SHUT_SECONDS_MAX)
        seconds = max(seconds, min(away.retry_after or 0.0, RETRY_AFTER_SECONDS_MAX))
        now = time.time()
        kept = {"url": self.url, "at": now, "until": now + seconds, "tries": tries + 1}
        try:
            home.private("hook")
            home.write(_path(), json.dumps({**kept, "why": away.why}).encode())
        except OSError:
            pass
        if away.why in ("key", "forbidden"):
            pass_on("key", f"the server does not take the key ({away}): run argus-hook doctor")
        else:
            pass_on("away", f"the server is away ({away}): what was said is kept and sent later")


def _path() -> str:
    return home.place("hook", "shut.json")


def _read() -> dict[str, Any]:
    try:
        with open(_path(), encoding="utf-8") as handle:
            kept = json.load(handle)
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _number(value: Any) -> float:
    """The value when it is a number that can be reckoned with, else 0."""
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e12 else 0.0


def _detail(answer: wire.Answer) -> str:
    """What a problem says, without what it may repeat of the body."""
    try:
        said = answer.json()
    except Away:
        return ""
    return str(said.get("code", ""))[:60] if isinstance(said, dict) else ""
