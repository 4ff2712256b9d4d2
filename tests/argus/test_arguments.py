"""A number that is none, or that no row can have, is told, by each command that takes one.

How: signs that `str.isdigit` takes for digits and `int` does not; more digits than either likes.
"""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from argus.hook.addresses import Address, Away
from memory.models import StageRun
from tests import factories

WRONG = ("²", "1²", "-1", "0", "1.5", "9" * 19, "9" * 5_000, "x")

IDS = (
    ("purge", "--raw"),
    ("purge", "--finish"),
    ("hold", "approve"),
    ("rejection", "accept"),
    ("rejection", "accept", "1", "--item"),
    ("rejection", "lift"),
    ("feedback", "wrong", "01234567-89ab-cdef-0123-456789abcdef", "--injection"),
)

COUNTS = (
    ("reconcile", "--sample"),
    ("reconcile", "--limit"),
    ("verify", "--limit"),
    ("process", "--limit"),
    ("undo", "--run"),
)


def told(*words: str) -> CommandError:
    # With `=`: what begins with a dash is no option.
    *before, last = words
    given = (
        [*before[:-1], f"{before[-1]}={last}"] if before[-1].startswith("--") else [*before, last]
    )
    with pytest.raises(CommandError) as error:
        call_command(*given)
    return error.value


@pytest.mark.parametrize("command", IDS, ids=" ".join)
def test_an_id_that_is_none_is_told(command: tuple[str, ...]) -> None:
    for wrong in WRONG:
        if not wrong.startswith("-") or command[-1].startswith("--"):
            assert "is no id: a whole number above zero" in str(told(*command, wrong)), wrong


@pytest.mark.parametrize("command", COUNTS, ids=" ".join)
def test_a_number_that_is_none_is_told(command: tuple[str, ...]) -> None:
    for wrong in WRONG:
        assert "is no whole number above zero" in str(told(*command, wrong)), wrong


@pytest.mark.django_db
def test_what_is_neither_a_note_nor_a_raw_item_is_told() -> None:
    factories.three()
    for wrong in ("", "²", "１²", "9" * 19, "9" * 5_000):
        error = told("trace", wrong)
        assert error.returncode == 2
        assert "neither a note (a uuid) nor a raw item (a number)" in str(error)
        assert len(str(error)) < 300
    assert told("trace", "9" * 18).returncode == 2
    assert not StageRun.objects.exists()


@pytest.mark.parametrize("port", ["0", "65536", "0000080", f"1{'0' * 5_000}", "8²"])
def test_a_port_that_can_be_none_is_told_by_the_hook(port: str) -> None:
    with pytest.raises(Away):
        Address(f"http://argus.example:{port}")
    assert Address("http://argus.example:8765").port == 8765
