"""A vault of Alice's, and vectors that are made of words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exporter.place import Place, around_vault
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


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Path]:
    """The folder of the vault in force; it is not there before an export makes it."""
    folder = tmp_path / "Vault"
    with around_vault(Place(folder, "alice")):
        yield folder
