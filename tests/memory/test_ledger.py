"""The ledger of what Argus put out: texts are known again by samples, injections by session."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.access import principal
from memory.ledger import ECHO_SHARE_MIN, ECHO_WORDS_MIN, came_from_us, emit, lie_in_vault, shown_in
from memory.models import Emission, Injection
from tests.memory.posting import NOW

pytestmark = pytest.mark.django_db


def text(seed: int, words: int) -> str:
    """So many words that no other seed has, in an order of their own."""
    return " ".join(f"word{seed}x{number * 7919 % 1009}" for number in range(words))


def put_out(emitted: str, owner: str = "alice", kind: str = "recall") -> None:
    emit(emitted, owner=principal(owner), kind=kind, now=NOW)


def known(*bodies: str, owner: str = "alice") -> list[bool]:
    return came_from_us(bodies, owner=principal(owner))


def test_it_knows_what_it_put_out_and_nothing_else() -> None:
    put_out(text(1, 200))
    assert known(text(1, 200), text(2, 200)) == [True, False]
    assert known() == []


def test_it_knows_a_part_of_what_it_put_out() -> None:
    put_out(text(1, 400))
    part = " ".join(text(1, 400).split()[100:200])
    assert known(part, part.upper(), part.replace(" ", ",\n")) == [True, True, True]


def test_it_takes_a_text_with_enough_news_as_news() -> None:
    put_out(text(1, 200))
    echo = text(1, 200)
    assert known(f"{echo} {text(2, 10)}") == [True]
    assert known(f"{echo} {text(2, round(200 / ECHO_SHARE_MIN))}") == [False]


def test_it_takes_words_of_two_blocks_as_news() -> None:
    """Said in one breath they are somebody's own: only one text at a time can be pasted whole."""
    put_out(text(1, 100))
    put_out(text(2, 100))
    assert known(f"{text(1, 100)} {text(2, 100)}") == [False]


def test_it_takes_a_short_text_as_news() -> None:
    put_out(text(1, 200))
    words = text(1, 200).split()
    assert known(" ".join(words[: ECHO_WORDS_MIN - 1])) == [False]
    assert known(" ".join(words[: ECHO_WORDS_MIN + 40])) == [True]


def test_what_was_put_out_to_one_is_news_from_another() -> None:
    put_out(text(1, 200), owner="alice")
    assert known(text(1, 200), owner="bob") == [False]


def test_it_finds_one_echo_among_many_texts_and_many_emissions() -> None:
    for seed in range(30):
        put_out(text(seed, 120))
    bodies = [text(seed, 120) for seed in range(25, 525)]
    assert [index for index, echo in enumerate(known(*bodies)) if echo] == list(range(5))


def test_it_remembers_a_text_once_for_each_owner_and_kind() -> None:
    for _ in range(2):
        put_out(text(1, 100))
    assert Emission.objects.count() == 1
    put_out(text(1, 100), kind="vault")
    put_out(text(1, 100), owner="bob")
    assert Emission.objects.count() == 3


@pytest.mark.parametrize("empty", ["", "   ", "...", "\n"])
def test_it_remembers_nothing_of_nothing(empty: str) -> None:
    put_out(empty)
    assert not Emission.objects.exists()
    assert known(empty) == [False]


def test_it_keeps_numbers_and_no_words() -> None:
    put_out("the canary sings " * 30)
    row = Emission.objects.get()
    assert "canary" not in repr({name: getattr(row, name) for name in ("reference", "shingles")})
    assert row.shingles == sorted(set(row.shingles))


def test_it_says_which_notes_a_session_had_been_shown() -> None:
    alice, one, two, three = principal("alice"), uuid4(), uuid4(), uuid4()
    given = {"owner": alice, "mode": "notes", "outcome": "injected"}
    Injection.objects.create(session="s1", note_ids=[one, two], created_at=NOW, **given)
    Injection.objects.create(session="s2", note_ids=[three], created_at=NOW, **given)

    def shown(session: str = "s1", owner: str = "alice") -> set[object]:
        return set(
            shown_in([one, three], owner=principal(owner), sessions=[session] if session else [])
        )

    assert shown() == {one}
    assert shown(session="s2") == {three}
    assert shown(session="s3") == shown(session="") == shown(owner="bob") == set()


def test_it_looks_a_page_of_the_vault_up_and_walks_no_others() -> None:
    alice = principal("alice")
    Emission.objects.bulk_create(
        Emission(owner=alice, kind="vault", reference=str(uuid4()), sha256=str(n), shingles=[n])
        for n in range(300)
    )
    with CaptureQueriesContext(connection) as queries:
        assert not lie_in_vault([uuid4()], owner=alice)
    with connection.cursor() as cursor:
        cursor.execute("SELECT argus_analyze()")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {queries[-1]['sql']}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "emission_of" in plan and "reference" in plan.partition("Index Cond")[2], plan
