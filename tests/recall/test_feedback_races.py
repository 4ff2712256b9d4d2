"""Feedback of several at once, in threads on a database of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection

from memory.models import Feedback, Principal
from recall.feedback import give_feedback
from recall.reader import reader
from tests.recall.making import NOW, note, people

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clone_db")]

PORT = "The staging database listens on port 5433."


def at_once(*acts: Callable[[], bool]) -> list[bool]:
    """What each of these answers when all start together."""
    start = threading.Barrier(len(acts))
    answers: list[bool] = []

    def run(act: Callable[[], bool]) -> None:
        try:
            start.wait()
            answers.append(act())
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_it_writes_one_row_when_the_same_is_said_twice_at_once() -> None:
    alice = people().alice
    one = note(alice, PORT, embedding=None)

    def say() -> bool:
        return give_feedback(one.pk, "never", principal=alice, now=NOW).fresh

    assert sorted(at_once(say, say, say, say)) == [False, False, False, True]
    assert Feedback.objects.count() == 1


def test_it_enters_a_new_folder_once_and_holds_nobody_elses_word_up() -> None:
    cast = people()
    one = note(cast.alice, PORT, embedding=None, visibility="team")

    def said_by(who: Principal) -> Callable[[], bool]:
        return lambda: (
            give_feedback(one.pk, "never", principal=who, now=NOW, cwd="/src/fresh").fresh
        )

    assert at_once(said_by(cast.alice), said_by(cast.bob)) == [True, True]
    (place,) = {row.project_id for row in Feedback.objects.all()}
    for who in (cast.alice, cast.bob):
        assert reader(who, place).notes_out == (one.pk,)
