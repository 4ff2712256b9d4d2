"""The last answer of a turn whose row is late, or never comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from argus.hook import spool
from memory.models import RawItem
from tests.hook.ground import Home, Toll
from tests.hook.talks import Talk, load, look_around, stored, tend

pytestmark = pytest.mark.usefixtures("here")

LATE = "It lives in\n  tools/deploy.sh."


@pytest.fixture
def here(wired: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(wired.path))


def over(talk: Talk, home: Home) -> None:
    """Another session begins, twice, after this one has been quiet."""
    for _ in range(2):
        talk.age()
        look_around(Talk("claude", home.path))


def test_it_is_not_needed_when_the_row_is_there(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Where is it?", LATE)
    tend(talk, last_assistant_message="It lives in tools/deploy.sh.")
    assert load(talk).insured == []
    tend(talk, "SessionEnd", reason="other")
    over(talk, wired)
    assert stored() == talk.turns


def test_it_gives_way_to_the_row_that_comes_later(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message=LATE)
    assert stored() == talk.turns
    assert len(load(talk).insured) == 1
    talk.say(LATE)
    tend(talk, "SessionEnd", reason="other")
    assert load(talk).insured == []
    over(talk, wired)
    assert stored() == talk.turns


def test_it_is_posted_once_when_no_row_ever_comes(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message=LATE)
    tend(talk, "SessionEnd", reason="other")
    assert stored() == talk.turns
    over(talk, wired)
    over(talk, wired)
    assert stored() == [*talk.turns, ("assistant", LATE)]
    item = RawItem.objects.as_pipeline().get(role="assistant")
    assert item.metadata["insured"] is True
    assert item.session == talk.session


def test_it_is_not_posted_before_the_session_is_over(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message=LATE)
    over(talk, wired)
    assert stored() == talk.turns
    # Killed, so that no end ever comes: half an hour of quiet is an end.
    for _ in range(2):
        talk.age(3600)
        look_around(Talk("claude", wired.path))
    assert stored() == [*talk.turns, ("assistant", LATE)]


def test_it_keeps_a_row_out_that_comes_after_its_words_were_posted(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message=LATE)
    tend(talk, "SessionEnd", reason="other")
    over(talk, wired)
    talk.say(LATE, "Thanks. Again?", LATE)
    tend(talk)
    told = stored()
    assert sorted(told) == sorted(talk.turns)
    assert told.count(("assistant", LATE)) == 2
    # Also when the file is read again from its beginning.
    data = talk.path.read_bytes()
    talk.path.unlink()
    talk.path.write_bytes(b"\n" + data)
    tend(talk)
    assert sorted(stored()) == sorted(talk.turns)


def test_it_knows_an_answer_in_several_rows(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Where is it?", "First.")
    talk.turns.append(("assistant", "Then."))
    talk.rows += talk._row("assistant", "Then.")
    talk.write()
    tend(talk, last_assistant_message="First.\n\nThen.")
    assert load(talk).insured == []


def test_it_waits_in_the_spool_when_the_server_is_away(wired: Home, toll: Toll) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message=LATE)
    tend(talk, "SessionEnd", reason="other")
    toll.mode = "status"
    over(talk, wired)
    assert len(spool.waiting()) == 1
    toll.mode = "pass"
    (wired.argus / "hook" / "shut.json").unlink()
    over(talk, wired)
    assert stored() == [*talk.turns, ("assistant", LATE)]


def test_it_insures_a_session_whose_file_is_gone(wired: Home) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message=LATE)
    tend(talk, "SessionEnd", reason="other")
    talk.path.unlink()
    for _ in range(2):
        look_around(Talk("claude", wired.path))
    assert stored() == [*talk.turns, ("assistant", LATE)]


@pytest.mark.parametrize("words", ["API Error: 529 overloaded", "<private>x</private>", "  "])
def test_it_insures_neither_errors_nor_what_is_private(wired: Home, words: str) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message=words)
    assert load(talk).insured == []


def fork(talk: Talk, home: Home) -> Talk:
    """A session that begins with all rows of this one, the answer among them."""
    copy = Talk("claude", home.path)
    copy.turns = [*talk.turns, ("assistant", LATE)]
    copy.rows = [{**row, "sessionId": copy.session} for row in talk.rows]
    row = copy._row("assistant", LATE)[0]
    when = datetime.now(UTC) - timedelta(seconds=2)
    copy.rows.append({**row, "timestamp": when.strftime("%Y-%m-%dT%H:%M:%S.000Z")})
    return copy.write()


@pytest.mark.parametrize("order", ["posted", "waits"])
def test_it_is_stored_once_when_a_fork_has_the_row(wired: Home, order: str) -> None:
    talk = Talk("claude", wired.path).say("Where is it?")
    tend(talk, last_assistant_message=LATE)
    tend(talk, "SessionEnd", reason="other")
    if order == "posted":
        over(talk, wired)
    copy = fork(talk, wired)
    for _ in range(2):
        tend(copy)
        over(talk, wired)
    assert sorted(stored()) == sorted([*talk.turns, ("assistant", LATE)])
    # The same words at another time are another answer.
    copy.say("Again?", LATE)
    tend(copy)
    assert stored().count(("assistant", LATE)) == 2
