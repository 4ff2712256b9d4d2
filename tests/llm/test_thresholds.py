"""How: the table's rows against each other and against an embedder that nobody measured."""

from __future__ import annotations

import logging

import pytest

from memory.llm import minilm
from memory.llm.thresholds import CAREFUL, ROWS, Row, threshold, thresholds


def test_it_has_a_measured_row_for_the_default_embedder() -> None:
    row = thresholds(minilm.NAME)
    assert row.calibrated and row.dedup_floor == threshold(minilm.NAME, "dedup_floor") == 0.60


def test_it_finds_a_row_whatever_the_tag_of_the_model() -> None:
    assert thresholds("nomic-embed-text:v1.5") is ROWS["nomic-embed"]
    assert threshold("nomic-embed-text", "dedup_floor") == 0.80


def test_it_says_that_an_unknown_embedder_was_not_calibrated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "memory.llm.thresholds"):
        assert thresholds("some-new-model") is CAREFUL
        thresholds("some-new-model")
    assert [r.getMessage() for r in caplog.records] == [f"some-new-model: {CAREFUL.how}"]


@pytest.mark.parametrize("row", [*ROWS.values(), CAREFUL])
def test_it_has_only_cosines_and_a_word_on_how_they_were_found(row: object) -> None:
    values = vars(row)
    assert all(0 < v < 1 for v in values.values() if isinstance(v, float))
    assert values["how"]


@pytest.mark.parametrize("row", [*ROWS.values(), CAREFUL])
def test_what_shares_a_hub_is_nearer_than_what_is_linked(row: Row) -> None:
    assert 0 < row.linked < row.clustered < 1


def test_the_vault_has_the_distances_that_it_promises_for_the_default_embedder() -> None:
    assert 1 - threshold(minilm.NAME, "linked") == pytest.approx(0.35)
    assert 1 - threshold(minilm.NAME, "clustered") == pytest.approx(0.22)
