"""What only Codex has: hooks that a person must trust, sub-agents that look like the person."""

from __future__ import annotations

import signal

import pytest

from tests.realclients.clients import Desk
from tests.realclients.conftest import Installer
from tests.realclients.ground import AT_PROMPT, AT_START, QUESTION, facts, holds, settle, stored
from tests.realclients.model import NOTHING_SCRIPTED
from tests.realclients.streams import Step


def test_it_runs_without_any_flag_since_its_hooks_are_trusted(
    codex: Desk, install: Installer
) -> None:
    install(codex)
    codex.model.script("Five times.")
    ran = codex.ask(QUESTION)
    assert (ran.exit, ran.out) == (0, "Five times.\n")
    assert facts(codex.model.main[0]) == [AT_START, AT_PROMPT]
    holds(codex, [("user", QUESTION), ("assistant", "Five times.")])


def test_it_does_nothing_until_its_hooks_are_trusted(codex: Desk, install: Installer) -> None:
    argus = install(codex, trust=False)
    codex.model.script("Five times.")
    codex.ask(QUESTION)
    settle(codex)
    assert (facts(codex.model.main[0]), stored()) == ([], [])
    argus.install(install.url, install.key)
    codex.model.script("Six times.")
    codex.ask("And now, with trust?", session=codex.session())
    # What was said meanwhile is not lost: the file is read from its beginning.
    holds(
        codex,
        [
            ("user", QUESTION),
            ("assistant", "Five times."),
            ("user", "And now, with trust?"),
            ("assistant", "Six times."),
        ],
    )


def test_it_stores_nothing_that_a_subagent_says(codex: Desk, install: Installer) -> None:
    install(codex)
    task = {"message": "look-for-it: where is the script?"}
    codex.model.script(
        Step("I send somebody.", tool=("spawn_agent", task), namespace="multi_agent_v1"),
        Step("the-agent-reports", only='"text": "look-for-it: where is the script?"'),
        Step("It is on its way.", seconds=2),
        "It is in tools.",
    )
    codex.ask("Let a sub-agent look for the script, please.", options=("-m", "gpt-5.1"))
    mine = [text for role, text in stored() if "look-for-it" in text or "the-agent-reports" in text]
    assert mine == []
    settle(codex)
    assert stored()[:2] == [
        ("user", "Let a sub-agent look for the script, please."),
        ("assistant", "I send somebody."),
    ]
    assert NOTHING_SCRIPTED not in [text for _, text in stored()]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_finds_the_prompt_of_a_turn_that_was_cut_off(
    codex: Desk, install: Installer, sent: signal.Signals
) -> None:
    install(codex)
    codex.model.script(Step("Too late.", seconds=20))
    codex.ask("This one is cut off in the middle.", interrupt=(sent, 0.5))
    codex.model.script("Fine again.")
    codex.ask("The next one, in the same session.", session=codex.session())
    holds(
        codex,
        [
            ("user", "This one is cut off in the middle."),
            ("user", "The next one, in the same session."),
            ("assistant", "Fine again."),
        ],
    )
