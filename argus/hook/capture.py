"""The verb of every hook that only listens: what was said goes to the server, and nobody waits.

The hook's own process reads stdin, looks whether anything is to be done and forks; the child lets
go of the client's pipes and does the work in its own time. Nothing is printed, no exit code but 0.
On the fast path up to the fork. Knows nothing about how transcripts are read.
"""

from __future__ import annotations

import os

from argus.hook import home, locate, optout, trouble
from argus.hook.events import Event, read_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

#: Events at which a session's file is read, per client.
READS = {
    "claude": ("Stop", "SessionEnd", "PreCompact", "SubagentStop"),
    "codex": ("Stop", "SessionEnd", "PreCompact", "SubagentStop", "Interrupt"),
    "pi": ("message_end", "agent_end", "session_shutdown", "session_before_compact"),
}
#: Events after which a conversation certainly has a file.
SPOKEN = ("Stop", "PreCompact", "agent_end", "SubagentStop")

#: How much the child gives way to what the person is doing.
NICENESS = 5

#: Descriptors that a client may have left open for us by mistake.
_DESCRIPTORS_MAX = 256


def capture(client: str, via: str) -> None:
    """Take one event from stdin and see to its session, in a detached child."""
    event = read_event(client)
    trouble.tell()
    if event is None or client not in READS or _told_twice(event, via):
        return
    settings = home.read_env()
    if forbidden(event, settings) or not _ours(event, settings):
        return
    if not settings.get("ARGUS_KEY"):
        trouble.complain("no-key", "no key in ~/.argus/env: run argus-hook install")
        return
    path = find(event)
    if not path and not (event.message or event.last or event.name in (*ENDS, *SPOKEN)):
        return

    def work() -> None:
        from argus.hook.tending import tend

        tend(event, path, settings)

    detach(work)


def catch_up(event: Event, flush: bool) -> None:
    """See to what earlier sessions left behind, in a detached child; returns at once.

    Sessions that ended without an event (a kill, an error, an Esc) are found again here. `flush`:
    also send what waits in the spool, which a prompt's hook never does.
    """
    settings = home.read_env()
    if event.client not in READS or not settings.get("ARGUS_KEY"):
        return

    def work() -> None:
        from argus.hook.around import look_around

        look_around(event, settings, flush)

    detach(work)


#: Events with which a session ends.
ENDS = ("SessionEnd", "session_shutdown")


def forbidden(event: Event, settings: dict[str, str]) -> bool:
    """Whether nothing of this session may be captured; it is marked so, for good.

    Why marked: what was said while Argus was off must not be found by a later catch-up.
    """
    if not optout.disabled() and home.on(settings, "ARGUS_CAPTURE"):
        return False
    if not event.agent:
        from argus.hook import sessions

        sessions.disable(event.client, event.session, event.transcript)
    return True


def _told_twice(event: Event, via: str) -> bool:
    """Whether a plugin tells what the hooks in the settings tell as well."""
    if via != "plugin" or event.client != "claude":
        return False
    from argus.hook.claude import installed

    return installed(event.name)


def _ours(event: Event, settings: dict[str, str]) -> bool:
    """Whether the event speaks of the person's own session, or of a sub-agent that is wanted."""
    if event.name not in READS[event.client] or not event.session:
        return False
    if event.name == "SubagentStop":
        # Why the type: a compaction ends as a sub-agent without one, and its words are a digest.
        wanted = home.on(settings, "ARGUS_SUBAGENTS", default=False)
        return wanted and bool(event.agent and event.agent_type and event.agent_transcript)
    return not event.agent


def find(event: Event) -> str:
    """The file of the event's session; "" when there is none yet."""
    if event.name == "SubagentStop":
        return event.agent_transcript if locate.readable(event.agent_transcript) else ""
    return locate.find(event.client, event.session, event.transcript)


def detach(work: Callable[[], None]) -> None:
    """Run `work` in a child that the client neither waits for nor sees; returns at once."""
    try:
        if os.fork():
            return
    except OSError as error:
        trouble.log(f"no child could be started: {error.strerror}")
        return
    try:
        os.setsid()
        os.nice(NICENESS)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.closerange(3, _DESCRIPTORS_MAX)
        work()
    except Exception as error:
        # Why all of them: there is nobody left who could hear of it but the log.
        trouble.log(f"child: {type(error).__name__}: {error}")
    finally:
        os._exit(0)
