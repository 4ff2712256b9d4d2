"""The lexical half: what is indexed, what a query asks for, and BM25 as others count it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.access import principal
from memory.lexical import (
    BM25_B,
    BM25_K1,
    COUNT_MAX,
    QUERY_TERMS_MAX,
    TERMS_A_TEXT_MAX,
    TRAITS,
    Packed,
    Statistics,
    bm25,
    ceiling,
    dated,
    hashed,
    lexemes,
    pack,
    query_terms,
    rarest,
    saturate,
    traits,
    weights,
)
from memory.models import Note, SearchText
from memory.text.stem import stem
from memory.text.words import words
from memory.tracks import asked
from tests.factories import T0
from tests.recall.making import notes

DEMO = Path(__file__).parents[1] / "fixtures" / "demo.md"

#: Any text as it is after cleaning.
TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=80)


def unpacked(packed: Packed) -> tuple[list[int], list[int], list[int]]:
    return (
        np.frombuffer(packed.terms, dtype="<i8").tolist(),
        np.frombuffer(packed.counts, dtype="<u2").tolist(),
        np.frombuffer(packed.heads, dtype="<u2").tolist(),
    )


def demo_texts() -> list[str]:
    return [line for line in DEMO.read_text().splitlines() if len(line.split()) > 3]


def made_texts(seed: int, count: int = 80) -> list[str]:
    """Texts of very different lengths over few words, so that terms repeat and are shared."""
    chance = random.Random(seed)
    vocabulary = [f"w{number}x" for number in range(60)] + ["src/app.py", "getUserName", "東京都"]
    return [
        " ".join(chance.choices(vocabulary, k=chance.choice((1, 3, 9, 30, 200))))
        for _ in range(count)
    ]


def theirs(texts: Sequence[str], query: Sequence[str]) -> list[float]:
    """What bm25s gives each text for these terms."""
    corpus = [lexemes(text) for text in texts]
    model = bm25s.BM25(method="lucene", k1=BM25_K1, b=BM25_B, dtype="float64")
    model.index(corpus, show_progress=False)
    known = [term for term in query if any(term in one for one in corpus)]
    if not known:
        return [0.0] * len(texts)
    scores: list[float] = model.get_scores(known).tolist()
    return scores


def counted(texts: Sequence[str], query: Sequence[str]) -> tuple[Any, Any, Statistics]:
    """Counts [texts, terms], lengths and statistics, counted anew from the packed texts."""
    names = [hashed(term) for term in query]
    packed = [pack(text) for text in texts]
    counts = np.zeros((len(texts), len(names)))
    for row, one in enumerate(packed):
        held = dict(zip(*unpacked(one)[:2], strict=True))
        counts[row] = [held.get(name, 0) for name in names]
    lengths = np.array([one.length for one in packed], dtype=np.float64)
    holding = tuple(int(number) for number in (counts > 0).sum(axis=0))
    return counts, lengths, Statistics(len(texts), float(lengths.mean()), holding)


@pytest.mark.parametrize(
    "texts",
    [demo_texts(), made_texts(1), made_texts(2, count=3), ["one text alone"]],
    ids=["demo", "made", "three", "one"],
)
def test_it_scores_as_bm25s_does(texts: list[str]) -> None:
    chance = random.Random(5)
    asked_for = [" ".join(chance.choices(text.split(), k=5)) for text in texts[:20]]
    asked_for += ["nothing of this stands anywhere", texts[0] + " zanzibar"]
    seen = 0
    for text in asked_for:
        query = query_terms(text)[:QUERY_TERMS_MAX]
        scores = bm25(*counted(texts, query)).tolist()
        assert scores == pytest.approx(theirs(texts, query), rel=1e-4, abs=1e-9)
        seen += max(scores, default=0.0) > 0
    assert seen > 0


@pytest.mark.django_db
def test_it_scores_what_the_index_keeps_as_bm25s_does() -> None:
    alice = principal("alice")
    said = demo_texts()
    notes(alice, said, embedding=None)
    notes(principal("bob"), made_texts(3), embedding=None)
    rows = list(SearchText.objects.visible_to(alice).order_by("pk"))
    bodies = {row.pk: row for row in Note.objects.visible_to(alice)}
    texts = [f"{bodies[row.note_id].title}\n{bodies[row.note_id].content}" for row in rows]
    assert len(texts) == len(said)
    for text in said[:12]:
        query = query_terms(text)[:QUERY_TERMS_MAX]
        mine = asked(alice, [hashed(term) for term in query])[False]
        counts = np.zeros((len(rows), len(mine.terms)))
        for at, row in enumerate(rows):
            packed = Packed(bytes(row.terms), bytes(row.counts), bytes(row.heads), row.length)
            held = dict(zip(*unpacked(packed)[:2], strict=True))
            counts[at] = [held.get(term, 0) for term in mine.terms]
        lengths = np.array([row.length for row in rows], dtype=np.float64)
        scores = bm25(counts, lengths, mine.known).tolist()
        assert scores == pytest.approx(theirs(texts, query), rel=1e-4, abs=1e-9)


def test_it_weighs_a_posting_by_its_share_of_the_score() -> None:
    texts = made_texts(4)
    query = query_terms(" ".join(texts[5].split()[:3])) or query_terms(texts[5])
    counts, lengths, known = counted(texts, query)
    shares = [dict(weights(pack(text), known.mean_length)) for text in texts]
    names = [hashed(term) for term in query]
    summed = [
        sum(share.get(name, 0.0) * idf for name, idf in zip(names, known.idf(), strict=True))
        for share in shares
    ]
    assert summed == pytest.approx(bm25(counts, lengths, known).tolist(), rel=1e-12)
    assert all(0 < weight < 1 for share in shares for weight in share.values())


def test_it_stays_below_the_ceiling_and_above_zero() -> None:
    known = Statistics(10, 5.0, (1, 10, 0, 25))
    assert (known.idf() > 0).all(), "not even what every text holds counts against it"
    endless = bm25(np.full((1, 4), 1e9), np.array([1.0]), known)
    assert endless[0] == pytest.approx(ceiling(known)) and endless[0] <= ceiling(known)
    assert ceiling(Statistics(0, 1.0, ())) > 0, "somebody divides by it"


def test_it_lets_repeats_saturate_and_length_cost() -> None:
    one, two, many = saturate(np.array([1.0, 2.0, 50.0]), np.full(3, 10.0), 10.0)
    assert two - one > many - 0.95 and one < two < many < 1
    short, long = saturate(np.array([1.0, 1.0]), np.array([5.0, 50.0]), 10.0)
    assert short > long


@given(TEXTS, TEXTS)
def test_it_packs_any_text_and_counts_what_stands_there(body: str, head: str) -> None:
    packed = pack(body, head)
    names, counts, heads = unpacked(packed)
    assert names == sorted(set(names)) and len(names) == len(counts) == len(heads)
    assert packed.length == len(lexemes(body)) == sum(counts)
    assert sum(heads) == len(lexemes(head))
    assert all(counted or headed for counted, headed in zip(counts, heads, strict=True))
    held = {name for name, count in zip(names, counts, strict=True) if count}
    assert {name for name, _ in weights(packed, 7.0)} == held


def test_it_bounds_what_it_keeps_of_a_very_long_text() -> None:
    rare = " ".join(f"w{number}x" for number in range(2 * TERMS_A_TEXT_MAX))
    packed = pack("word " * (COUNT_MAX + 10) + rare, head="harbor")
    names, counts, _ = unpacked(packed)
    assert len(names) == TERMS_A_TEXT_MAX + 1, "the header's words are never left out"
    assert packed.length == COUNT_MAX + 10 + 2 * TERMS_A_TEXT_MAX
    assert dict(zip(names, counts, strict=True))[hashed(stem("word"))] == COUNT_MAX
    assert hashed("harbor") in names


@pytest.mark.parametrize("body", ["", " \n", "!!! ... --", "\u200b"])
def test_it_packs_what_has_no_words(body: str) -> None:
    assert pack(body) == Packed(b"", b"", b"", 0) and weights(pack(body), 0.0) == []


@pytest.mark.parametrize(
    ("body", "asked_for"),
    [
        ("Das Büro liegt in der Straße.", "buro strasse"),
        ("東京都の設定を変更した", "設定"),
        ("см. базу данных", "данных"),
        ("fix getUserName in src/api/app.py:42", "username user app.py"),
        ("서버 포트를 바꿨다", "포트"),
    ],
)
def test_it_finds_accents_scripts_and_code_by_what_people_type(body: str, asked_for: str) -> None:
    names = set(unpacked(pack(body))[0])
    hit = [term for term in query_terms(asked_for) if hashed(term) in names]
    assert hit, (words(body), query_terms(asked_for))


def test_it_names_a_term_the_same_on_every_machine() -> None:
    assert hashed("harbor") == hashed("harbor") != hashed("harbour")
    assert hashed("port") == 2275337369279512434
    assert len({hashed(f"w{number}") for number in range(10_000)}) == 10_000


def test_it_asks_for_distinct_stems_without_stop_words() -> None:
    said = "Which ports do the port of the databases use?"
    assert query_terms(said) == ["port", "databas", "use"]
    assert query_terms("the of and") == []


def test_it_keeps_the_rarest_of_too_many_terms_in_their_order() -> None:
    holding = tuple(range(100, 0, -1))
    kept = rarest(list(range(100)), Statistics(1_000, 5.0, holding))
    assert kept == list(range(100 - QUERY_TERMS_MAX, 100))
    assert rarest([7, 8], Statistics(5, 1.0, (3, 3))) == [0, 1]
    assert rarest([], Statistics(0, 1.0, ())) == []


def test_it_says_a_date_as_people_ask_for_it() -> None:
    assert dated(T0) == "2 March 2026"
    names = set(unpacked(pack("", dated(T0)))[0])
    assert {hashed(term) for term in query_terms("in March 2026")} <= names


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Where is it?", {"asks"}),
        ("どこですか？", {"asks"}),
        ('He asked "why?"', {"asks"}),
        ("Why? Because.", set()),
        ("We moved yesterday", {"time", "first_person"}),
        ("The port is 8443", {"digit"}),
        ("am Abend? mein haus", {"first_person"}),
        ("at 9:30", {"time", "digit"}),
        ("It is done.", set()),
        ("", set()),
    ],
)
def test_it_knows_the_traits_of_a_text(body: str, expected: set[str]) -> None:
    bits = traits(body)
    found = {name for bit, name in enumerate(TRAITS) if bits >> bit & 1}
    assert found - {"proper"} == expected


def test_it_knows_a_name_inside_a_sentence() -> None:
    bit = 1 << TRAITS.index("proper")
    assert traits("we asked Priya about it") & bit
    assert not traits("we asked her about it") & bit
