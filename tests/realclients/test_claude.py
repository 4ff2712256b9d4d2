"""What only Claude Code has: two ways for a prompt, plugins, sub-agents, Ctrl-C that saves."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from argus.plugin import plugin
from tests.hook.ground import Toll
from tests.realclients.clients import Desk
from tests.realclients.conftest import Installer
from tests.realclients.ground import AT_PROMPT, AT_START, QUESTION, facts, holds, said, stored
from tests.realclients.streams import Step

#: An older model, to which Claude Code gives context in the user's own message.
OTHER_MODEL = ("--model", "claude-sonnet-4-5")


def roads(toll: Toll) -> set[str]:
    """Which doors were used."""
    return {path.partition("?")[0] for _, path, _ in toll.requests}


@pytest.mark.parametrize("mode", ["http", "command"])
@pytest.mark.parametrize("options", [(), OTHER_MODEL], ids=["default", "older-model"])
def test_it_tells_the_model_the_same_in_both_modes(
    claude: Desk, install: Installer, toll: Toll, mode: str, options: tuple[str, ...]
) -> None:
    install(claude, "--mode", mode)
    claude.model.script("Five times.")
    ran = claude.ask(QUESTION, options=options)
    assert (ran.exit, ran.out, ran.err) == (0, "Five times.\n", "")
    assert facts(claude.model.main[0]) == [AT_START, AT_PROMPT]
    assert ("/hook/claude/UserPromptSubmit" in roads(toll)) is (mode == "http")
    assert ("/recall/notes" in roads(toll)) is (mode == "command")
    holds(claude, [("user", QUESTION), ("assistant", "Five times.")])


def test_it_writes_no_key_where_others_read(
    claude: Desk, install: Installer, key: str, toll: Toll
) -> None:
    install(claude, "--mode", "http")
    claude.model.script("Five times.")
    claude.ask(QUESTION)
    kept = (claude.home / ".argus" / "env").read_text().splitlines()
    own = dict(line.split("=", 1) for line in kept)["ARGUS_KEY"]
    for secret in (key, own):
        for path in (claude.home / ".claude").rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes()
        # Why the transcript: Claude Code writes the command lines of hooks into it.
        assert secret not in said(claude)


def test_it_captures_and_recalls_once_where_a_plugin_and_settings_both_hook(
    claude: Desk, install: Installer, tmp_path: Path
) -> None:
    made = _plugin(tmp_path)
    install(claude, "--mode", "command")
    claude.model.script("Five times.")
    claude.ask(QUESTION, options=("--plugin-dir", str(made)))
    assert facts(claude.model.main[0]) == [AT_START, AT_PROMPT]
    holds(claude, [("user", QUESTION), ("assistant", "Five times.")])


def test_it_works_as_a_plugin_alone(claude: Desk, install: Installer, tmp_path: Path) -> None:
    made = _plugin(tmp_path)
    argus = install(claude)
    argus.uninstall()
    claude.model.script("Five times.")
    claude.ask(QUESTION, options=("--plugin-dir", str(made)))
    assert facts(claude.model.main[0]) == [AT_START, AT_PROMPT]
    holds(claude, [("user", QUESTION), ("assistant", "Five times.")])


def _plugin(folder: Path) -> Path:
    target = folder / "argus-plugin"
    plugin(str(target), "1.0.0")
    return target


def test_it_stores_nothing_that_a_subagent_says(claude: Desk, install: Installer) -> None:
    install(claude)
    task = {
        "description": "find it", "subagent_type": "general-purpose",
        "prompt": "look-for-it: where is the script?",
    }  # fmt: skip
    claude.model.script(
        Step("I send somebody.", tool=("Agent", task)),
        Step("the-agent-reports", only="look-for-it"),
        "It is in tools.",
    )
    claude.ask("Let a sub-agent look for the deploy script, please.")
    assert "the-agent-reports" in said(claude)
    assert [turn for turn in stored() if "look-for-it" in turn[1]] == []
    holds(
        claude,
        [
            ("user", "Let a sub-agent look for the deploy script, please."),
            ("assistant", "I send somebody."),
            ("assistant", "It is in tools."),
        ],
    )
    # Its first request, too, was told nothing of ours.
    asked = next(asked for asked in claude.model.main if "look-for-it" in asked.turns[0][1])
    assert facts(asked) == []


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_finds_the_prompt_of_a_turn_that_was_cut_off(
    claude: Desk, install: Installer, sent: signal.Signals
) -> None:
    install(claude)
    claude.model.script(Step("Too late.", seconds=20))
    claude.ask("This one is cut off in the middle.", interrupt=(sent, 0.5))
    claude.model.script("Fine again.")
    claude.ask("The next one, in the same session.", session=claude.session())
    holds(
        claude,
        [
            ("user", "This one is cut off in the middle."),
            ("user", "The next one, in the same session."),
            ("assistant", "Fine again."),
        ],
    )


def test_it_stays_out_of_a_folder_that_says_so(claude: Desk, install: Installer) -> None:
    install(claude)
    (claude.project / ".argus.json").write_text(json.dumps({"enabled": False}))
    claude.model.script("Five times.")
    claude.ask(QUESTION)
    assert facts(claude.model.main[0]) == []
    holds(claude, [])
