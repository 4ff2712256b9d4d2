"""What only pi has: a session's file that comes late or never, and handlers without a deadline."""

from __future__ import annotations

import signal

import pytest

from tests.hook.ground import PATIENCE_SECONDS, Toll
from tests.realclients.clients import Desk
from tests.realclients.conftest import Installer
from tests.realclients.ground import AT_PROMPT, QUESTION, facts, holds
from tests.realclients.streams import Step


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_keeps_the_prompt_of_a_turn_that_was_cut_off(
    pi: Desk, install: Installer, sent: signal.Signals
) -> None:
    install(pi)
    pi.model.script(Step("Too late.", seconds=20))
    pi.ask("This one is cut off in the middle.", interrupt=(sent, 0.5))
    assert pi.transcripts() == []
    holds(pi, [("user", "This one is cut off in the middle.")])


def test_it_leaves_a_session_alone_that_pi_does_not_keep(pi: Desk, install: Installer) -> None:
    install(pi)
    pi.model.script("Five times.")
    ran = pi.ask(QUESTION, options=("--no-session",))
    assert (ran.exit, ran.out) == (0, "Five times.\n")
    assert facts(pi.model.main[0]) == []
    holds(pi, [])


@pytest.mark.parametrize("mode", ["hang", "slow"])
def test_it_goes_on_before_a_server_that_keeps_it_waiting(
    pi: Desk, install: Installer, toll: Toll, mode: str
) -> None:
    install(pi)
    toll.mode = mode
    pi.model.script("Five times.")
    ran = pi.ask(QUESTION)
    assert (ran.exit, ran.out, ran.err) == (0, "Five times.\n", "")
    # Both the start and the prompt wait, each for its own deadline, and pi itself has none.
    assert ran.seconds < min(toll.seconds, PATIENCE_SECONDS)


def test_it_is_seen_by_the_model_as_data_and_by_nobody_else(pi: Desk, install: Installer) -> None:
    install(pi)
    pi.model.script("Five times.")
    pi.ask(QUESTION)
    role, text = next(turn for turn in pi.model.main[0].turns if AT_PROMPT in turn[1])
    assert role == "user" and text != QUESTION
    pi.model.script("Six times.")
    pi.ask("And then, what does it do?", session=pi.session())
    holds(
        pi,
        [
            ("user", QUESTION),
            ("assistant", "Five times."),
            ("user", "And then, what does it do?"),
            ("assistant", "Six times."),
        ],
    )
