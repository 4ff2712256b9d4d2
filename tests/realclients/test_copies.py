"""Fork, resume and compaction: history that a client copies or sums up is not stored again."""

from __future__ import annotations

from tests.realclients.clients import Desk
from tests.realclients.conftest import Installer
from tests.realclients.ground import QUESTION, facts, holds, said
from tests.realclients.streams import Step

DIGEST = "digest-of-what-was-said"

#: What Codex is told so that the second prompt finds the window full.
SMALL_WINDOW = ("-c", "model_auto_compact_token_limit=50000")


def test_it_stores_nothing_again_when_a_session_is_forked(desk: Desk, install: Installer) -> None:
    install(desk)
    desk.model.script("Five times.")
    desk.ask(QUESTION)
    first = desk.session()
    desk.model.script("The fork says six.")
    desk.ask("Let us take another way here.", session=first, fork=True)
    assert desk.session() != first
    desk.model.script("The trunk says seven.")
    desk.ask("And the old way goes on.", session=first)
    holds(
        desk,
        [
            ("user", QUESTION),
            ("assistant", "Five times."),
            ("user", "Let us take another way here."),
            ("assistant", "The fork says six."),
            ("user", "And the old way goes on."),
            ("assistant", "The trunk says seven."),
        ],
    )


def test_it_stores_neither_the_digest_nor_the_kept_turns_when_claude_compacts(
    claude: Desk, install: Installer
) -> None:
    install(claude)
    # Why so long: Claude Code compacts no session of a few words.
    long = [f"Fact {n}. " + "Background of the shop. " * 900 for n in range(3)]
    answers = [f"Noted {n}. " + "And more of it. " * 600 for n in range(3)]
    for n, (prompt, answer) in enumerate(zip(long, answers, strict=True)):
        claude.model.script(answer)
        claude.ask(prompt, session=claude.session() if n else "")
    claude.model.script(Step(f"<summary>{DIGEST}</summary>", only="summary", times=2))
    ran = claude.ask("/compact keep the first fact", session=claude.session())
    assert ran.exit == 0
    claude.model.script("It was the first.")
    claude.ask("Which fact was the first?", session=claude.session())
    assert DIGEST in claude.model.main[-1].text
    spoken = [turn for pair in zip(long, answers, strict=True) for turn in _pair(*pair)]
    # What stands behind the command is the person's own.
    spoken.append(("user", "keep the first fact"))
    holds(claude, [*spoken, *_pair("Which fact was the first?", "It was the first.")])


def test_it_stores_no_digest_when_codex_compacts(codex: Desk, install: Installer) -> None:
    install(codex)
    codex.model.script(Step("Noted.", tokens=90_000))
    codex.ask(QUESTION, options=SMALL_WINDOW)
    codex.model.script(Step(DIGEST, only="CHECKPOINT"), "It was the first.")
    codex.ask("Which was the first?", session=codex.session(), options=SMALL_WINDOW)
    assert DIGEST in said(codex)
    holds(codex, [*_pair(QUESTION, "Noted."), *_pair("Which was the first?", "It was the first.")])


def test_it_stores_no_digest_when_pi_compacts(pi: Desk, install: Installer) -> None:
    install(pi)
    long = "Background of the shop. " * 1_500
    pi.model.script("Noted. " + long)
    pi.ask("First. " + long)
    digest = Step(DIGEST, only="The messages above are a conversation")
    pi.model.script(digest, Step("Noted again. " + long, tokens=127_000))
    pi.ask("Second. " + long, session=pi.session())
    pi.model.script("It was the first.")
    pi.ask("Which was the first?", session=pi.session())
    assert DIGEST in pi.model.main[-1].text
    holds(
        pi,
        [
            *_pair("First. " + long, "Noted. " + long),
            *_pair("Second. " + long, "Noted again. " + long),
            *_pair("Which was the first?", "It was the first."),
        ],
    )


def test_it_tells_a_resumed_session_its_project_again(desk: Desk, install: Installer) -> None:
    install(desk)
    desk.model.script("Five times.")
    desk.ask("Good morning, let us begin.")
    first = facts(desk.model.main[-1])
    desk.model.script("Six times.")
    desk.ask("Now we go on with it.", session=desk.session())
    assert len(facts(desk.model.main[-1])) >= len(first) >= 1


def _pair(prompt: str, answer: str) -> list[tuple[str, str]]:
    return [("user", prompt), ("assistant", answer)]
