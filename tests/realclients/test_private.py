"""What a person keeps to themselves: private spans, secrets, and sessions that are nobody's."""

from __future__ import annotations

from tests.hook.ground import Toll
from tests.realclients.clients import CLAUDE, Desk
from tests.realclients.conftest import Installer
from tests.realclients.ground import QUESTION, facts, holds, settle, stored

#: Shaped like a token, and nobody's.
TOKEN = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
PRIVATE = "the colour of the boat"


def test_it_lets_neither_a_secret_nor_a_private_span_leave_the_machine(
    desk: Desk, install: Installer, toll: Toll
) -> None:
    # Why a command: the http hook is Claude Code's own request, to this very machine.
    install(desk, *(("--mode", "command") if desk.client is CLAUDE else ()))
    desk.model.script(f"I keep {TOKEN} for you.")
    desk.ask(f"{QUESTION} <private>It is {PRIVATE}.</private> The token is {TOKEN}, mind it.")
    settle(desk)
    (_, prompt), (_, answer) = stored()
    assert prompt.startswith(f"{QUESTION} [private] The token is ")
    assert all(secret not in prompt + answer for secret in (TOKEN, PRIVATE))
    sent = b"".join(body + path.encode() for _, path, body in toll.requests)
    assert QUESTION.encode() in sent
    assert TOKEN.encode() not in sent and PRIVATE.encode() not in sent
    # Nor does it lie about in our own folder: not in the log, the states, the spool.
    ours = [path for path in (desk.home / ".argus").rglob("*") if path.is_file()]
    assert not [path for path in ours if TOKEN.encode() in path.read_bytes()]


def test_it_never_takes_up_a_session_that_was_run_with_argus_disabled(
    desk: Desk, install: Installer
) -> None:
    install(desk)
    desk.model.script("Nobody keeps this.")
    desk.ask(QUESTION, extra={"ARGUS_DISABLED": "1"})
    assert facts(desk.model.main[-1]) == []
    desk.model.script("Five times.")
    desk.ask(QUESTION)
    holds(desk, [("user", QUESTION), ("assistant", "Five times.")])
