"""A person's session in each client: what is kept of it, what its model is told, what it costs.

Four prompts, each in a run of its own: odd letters, a tool call, an error of the model's API, and
one after it. Exactly what the two said is in the record, once and in order.
"""

from __future__ import annotations

from pathlib import Path

from tests.realclients.clients import Client, Desk, Ran
from tests.realclients.conftest import Installer
from tests.realclients.ground import (
    AT_PROMPT,
    AT_START,
    ODD,
    QUESTION,
    Turns,
    complaints,
    configuration,
    facts,
    holds,
    said,
    told,
)
from tests.realclients.model import Model, listening
from tests.realclients.streams import Step

ERROR = "the scripted API refuses this"
OUTPUT = "printed-by-the-tool"

#: Each prompt with what the model says to it.
STORY: tuple[tuple[str, tuple[Step | str, ...]], ...] = (
    (f"{QUESTION} {ODD}", (f"Five times. {ODD}",)),
    (
        "Run echo and tell me what it prints, please.",
        (Step("I run it now.", shell=f"echo {OUTPUT}"), "It printed one word."),
    ),
    ("This prompt meets an error of the API.", (Step(status=400, message=ERROR, times=-1),)),
    (f"And once more: {QUESTION}", ("Five times, as I said.",)),
)

#: What of it is said by the two.
SPOKEN: Turns = (
    ("user", STORY[0][0]),
    ("assistant", f"Five times. {ODD}"),
    ("user", STORY[1][0]),
    ("assistant", "I run it now."),
    ("assistant", "It printed one word."),
    ("user", STORY[2][0]),
    ("user", STORY[3][0]),
    ("assistant", "Five times, as I said."),
)


def tell(desk: Desk) -> list[Ran]:
    """Go through the story: one run a prompt, all in one session."""
    runs: list[Ran] = []
    for prompt, steps in STORY:
        desk.model.script(*steps)
        session = desk.session() if runs else ""
        runs.append(desk.ask(prompt, session=session))
    return runs


def bare(client: Client, folder: Path) -> list[Ran]:
    """The same story where nobody has heard of Argus."""
    with listening() as model:
        return tell(Desk(client, folder / "home", folder / "home" / "src" / "webshop", model))


def test_it_keeps_what_was_said_once_in_order_and_nobody_notices(
    desk: Desk, install: Installer, model: Model, tmp_path: Path
) -> None:
    install(desk)
    runs = tell(desk)
    holds(desk, SPOKEN)
    first, last = model.main[0], model.main[-1]
    assert facts(first) == [AT_START, AT_PROMPT]
    # The last run is told both again, and what the first was told stands where it stood.
    assert facts(last).count(AT_PROMPT) == 2
    # The traps were there: the error, the tool's output and our own block are in the transcript.
    assert all(trap in said(desk) for trap in (ERROR, OUTPUT, AT_PROMPT))
    assert [told(run) for run in runs] == [told(run) for run in bare(desk.client, tmp_path / "b")]
    assert [complaints(desk, run) for run in runs][:2] == ["", ""]


def test_it_leaves_every_byte_as_it_was_when_it_goes(desk: Desk, install: Installer) -> None:
    before = configuration(desk)
    argus = install(desk)
    assert configuration(desk) != before
    changed = configuration(desk)
    desk.model.script("Five times.")
    desk.ask(QUESTION)
    assert configuration(desk) == changed
    argus.uninstall()
    assert configuration(desk) == before
    desk.model.script("Five times, again.")
    desk.ask(QUESTION)
    holds(desk, [("user", QUESTION), ("assistant", "Five times.")])
    assert facts(desk.model.main[-1]) == []
