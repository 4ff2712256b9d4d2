"""A scripted model server, and settings that point at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from pydantic import SecretStr

from memory.llm.remote.structured import forget_dialects
from tests.openai_server import OpenAIServer, running


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    forget_dialects()
    with running() as server:
        yield server


@pytest.fixture
def configure(server: OpenAIServer, settings: Any) -> Callable[..., None]:
    """Point the settings of this test at the server, with changes by keyword."""

    def change(**values: Any) -> None:
        base = {
            "model_url": server.url,
            "model": "scripted",
            "model_key": SecretStr("sk-test-key"),
            "embedder": "url",
            "embed_url": server.url,
            "embed_model": "scripted-embed",
            "model_timeout_seconds": 10.0,
        }
        settings.ARGUS = django_settings.ARGUS.model_copy(update=base | values)

    change()
    return change
