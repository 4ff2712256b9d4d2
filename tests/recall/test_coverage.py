"""Coverage: a question's words by what they weigh; identifiers once, project names not at all."""

from __future__ import annotations

import pytest

from recall.coverage import TEXTS_MIN, groups, names_of, rarity, shares

EVEN = {"port": 1.0, "stage": 1.0, "github": 1.0, "git": 1.0, "hub": 1.0, "harbor": 1.0}


def test_it_shares_a_question_among_its_words() -> None:
    assert shares("port stage", EVEN) == {"port": 0.5, "stage": 0.5}


def test_it_gives_a_rare_word_the_larger_share() -> None:
    got = shares("port stage", {"port": 3.0, "stage": 1.0})
    assert got == {"port": 0.75, "stage": 0.25}


def test_it_counts_an_identifier_once_however_many_parts_it_has() -> None:
    got = shares("port GitHub", EVEN)
    assert got["port"] == pytest.approx(0.5)
    assert got["github"] + got["git"] + got["hub"] == pytest.approx(0.5)


def test_it_gives_the_name_of_a_project_no_share() -> None:
    names = names_of(["harbor", "pi-mono"])
    assert shares("the port of harbor's stage", EVEN, names) == {"port": 0.5, "stage": 0.5}


def test_it_keeps_an_identifier_that_merely_holds_the_name_of_a_project() -> None:
    assert groups("api.harbor.example")[0][0] not in names_of(["harbor"])


def test_it_leaves_out_what_was_not_asked_in_the_collection() -> None:
    assert shares("port lighthouse", EVEN) == {"port": 1.0}


def test_it_is_empty_when_nothing_weighs() -> None:
    assert shares("what is the", EVEN) == {}
    assert shares("harbor", EVEN, names_of(["harbor"])) == {}


def test_it_takes_each_pair_of_a_script_without_spaces_as_a_word() -> None:
    assert all(len(one) == 1 for one in groups("预发环境的端口"))


def test_it_weighs_rare_words_more() -> None:
    weights = rarity(1_000, [0, 1, 10, 1_000])
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0


def test_it_lets_known_words_count_in_a_memory_of_one_note() -> None:
    held, unknown = rarity(1, [1, 0])
    assert held > unknown / 2
    assert rarity(1, [1]) == rarity(TEXTS_MIN, [1])
