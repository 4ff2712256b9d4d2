"""Questions made by rule from one's own notes."""

from __future__ import annotations

from recall.evaluation.own import Known, questions


def known(at: int, content: str, **fields: object) -> Known:
    names = frozenset({f"note:{at}", f"raw:{at}"})
    return Known(f"note:{at}", content, names, "turn")


NOTES = [
    known(1, "The staging database listens on port 5433 behind the proxy of the office."),
    known(2, "The staging database is restored from the nightly dump before each release."),
    known(3, "Deploys of the shop go through the canary named heron-7 before the others."),
    known(4, "Short one."),
]


def asked(category: str) -> dict[str, frozenset[str]]:
    return {q.text: q.facts[0] for q in questions(NOTES) if q.category == category}


def test_it_asks_for_identifiers_that_few_notes_hold() -> None:
    found = asked("identifier")
    assert found["What do we know about heron-7?"] == {"note:3", "raw:3"}
    assert found["What do we know about 5433?"] == {"note:1", "raw:1"}
    common = [
        known(at, f"Host web-1 has the role number {at} of the whole set.") for at in range(9)
    ]
    assert "What do we know about web-1?" not in {q.text for q in questions(common)}


def test_it_asks_for_the_rarest_words_in_their_order() -> None:
    words = next(text for text, fact in asked("keyword").items() if "note:3" in fact).split()
    assert len(words) == 3 and not {"the", "of", "database"} & set(words)
    assert sorted(words, key=NOTES[2].content.index) == words


def test_it_hides_the_rarest_words_of_a_cloze() -> None:
    cloze = next(text for text, fact in asked("cloze").items() if "note:1" in fact)
    assert len(cloze) < len(NOTES[0].content) and "database" in cloze and "  " not in cloze
    assert any(word not in cloze for word in ("5433", "proxy", "office", "behind"))


def test_it_asks_nothing_of_a_note_that_says_too_little() -> None:
    assert not [q for q in questions(NOTES) if "note:4" in q.facts[0]]


def test_it_makes_the_same_questions_each_time() -> None:
    assert questions(NOTES) == questions(list(NOTES))
    assert {q.text for q in questions(NOTES[::-1])} == {q.text for q in questions(NOTES)}


def test_it_takes_a_note_that_says_the_same_for_right_as_well() -> None:
    twin = known(9, NOTES[0].content)
    facts = {q.facts[0] for q in questions([*NOTES, twin]) if "note:1" in q.facts[0]}
    assert facts == {frozenset({"note:1", "raw:1", "note:9", "raw:9"})}
