"""Claude Code as a person sits before it: words typed while a tool runs, Esc, /clear."""

from __future__ import annotations

import time

from tests.hook.ground import wait_until
from tests.realclients.clients import Desk
from tests.realclients.conftest import Installer
from tests.realclients.ground import AT_PROMPT, AT_START, QUESTION, facts, holds, said, stored
from tests.realclients.screen import ESCAPE, Screen, shown
from tests.realclients.streams import Step

#: Seconds until a turn that is over shows its input line again.
CALM_SECONDS = 1.0


def told(text: str) -> None:
    """Wait until this stands in the record."""
    wait_until(lambda: text in [body for _, body in stored()], f"{text!r} is in the record")
    time.sleep(CALM_SECONDS)


def asked(desk: Desk, count: int) -> None:
    """Wait until the model was asked so often."""
    wait_until(lambda: len(desk.model.main) >= count, f"the model is asked {count} times")


def begin(screen: Screen, desk: Desk) -> None:
    """The first prompt and its answer."""
    wait_until(lambda: b"\xe2\x9d\xaf" in screen.painted or b"> " in screen.painted, "it starts")
    time.sleep(2 * CALM_SECONDS)
    screen.type(QUESTION)
    told("Five times.")


def test_it_keeps_what_is_typed_while_a_tool_runs_and_nothing_of_an_escape(
    claude: Desk, install: Installer
) -> None:
    install(claude)
    claude.model.script(
        "Five times.",
        Step("I run it.", shell="sleep 4; echo tool-done"),
        "I saw what you added.",
        Step("I run a long one.", shell="sleep 30"),
        "The long one was stopped.",
    )
    with shown(claude) as screen:
        begin(screen, claude)
        screen.type("Please run the tool.")
        asked(claude, 2)
        time.sleep(CALM_SECONDS)
        screen.type("And mind the harbour while it runs.")
        told("I saw what you added.")
        screen.type("Now run the long one.")
        asked(claude, 4)
        time.sleep(CALM_SECONDS)
        screen.press(ESCAPE)
        time.sleep(2 * CALM_SECONDS)
        screen.type("Why did you stop?")
        told("The long one was stopped.")
        assert screen.leave() == 0
    assert "queued_command" in said(claude)
    assert "interrupted by user" in said(claude)
    assert facts(claude.model.main[0]) == [AT_START, AT_PROMPT]
    holds(
        claude,
        [
            ("user", QUESTION),
            ("assistant", "Five times."),
            ("user", "Please run the tool."),
            ("assistant", "I run it."),
            ("user", "And mind the harbour while it runs."),
            ("assistant", "I saw what you added."),
            ("user", "Now run the long one."),
            ("assistant", "I run a long one."),
            ("user", "Why did you stop?"),
            ("assistant", "The long one was stopped."),
        ],
    )


def test_it_follows_a_clear_and_keeps_no_prompt_that_was_taken_back(
    claude: Desk, install: Installer
) -> None:
    install(claude)
    claude.model.script(
        "Five times.", "After the clear.", Step("Never shown.", seconds=30), "After the escape."
    )
    with shown(claude) as screen:
        begin(screen, claude)
        screen.type("/clear")
        time.sleep(2 * CALM_SECONDS)
        screen.type("The first one after the clear.")
        told("After the clear.")
        assert AT_START in facts(claude.model.main[1])
        screen.type("This one is taken back")
        asked(claude, 3)
        time.sleep(CALM_SECONDS)
        screen.press(ESCAPE)
        time.sleep(2 * CALM_SECONDS)
        # Its words stand in the input line again, and the person goes on writing.
        screen.type(" and finished.")
        told("After the escape.")
        assert screen.leave() == 0
    assert len(claude.transcripts()) == 2
    holds(
        claude,
        [
            ("user", QUESTION),
            ("assistant", "Five times."),
            ("user", "The first one after the clear."),
            ("assistant", "After the clear."),
            ("user", "This one is taken back and finished."),
            ("assistant", "After the escape."),
        ],
    )
