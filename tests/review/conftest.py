"""The scripted model server for tests of the stages, and an embedder that is quick."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory.llm.remote.embed import shared
from tests.llm.conftest import configure, server
from tests.openai_server import OpenAIServer

__all__ = ["configure", "server"]


@pytest.fixture
def local(server: OpenAIServer, configure: Callable[..., None]) -> Callable[..., None]:
    """The distiller and judge of a default installation, with vectors made of words."""
    shared.cache_clear()
    configure(model_url=None, model=None)
    return configure
