"""Where models are served, by the settings. Knows nothing about the client that talks to them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from django.conf import settings
from pydantic import SecretStr

from memory.errors import ConfigurationError

#: Time one query may take before recall goes on without vectors.
# Why: a person waits for the prompt; hooks give up after two seconds.
# Calibrate: p99 of a warm embedding server, well under the hook's deadline.
QUERY_TIMEOUT_SECONDS = 1.5


@dataclass(frozen=True)
class Endpoint:
    """Where a port is served. `kind` keeps what one host serves apart when a part of it rests."""

    kind: str
    url: str
    model: str
    key: str = field(default="", repr=False)
    timeout_seconds: float = 60.0

    @property
    def provider(self) -> str:
        return f"{self.kind}:{urlsplit(self.url).netloc}"


def chat_endpoint(model: str | None = None) -> Endpoint:
    """The chat endpoint of the settings, for this model or the usual one."""
    env = settings.ARGUS
    return _endpoint("chat", env.model_url, model or env.model, env.model_key)


def embed_endpoint() -> Endpoint:
    """The embeddings endpoint of the settings."""
    env = settings.ARGUS
    return _endpoint("embed", env.embed_url, env.embed_model, env.embed_key)


def rerank_endpoint() -> Endpoint:
    """The rerank endpoint of the settings, with its own short deadline: an agent waits."""
    env = settings.ARGUS
    endpoint = _endpoint("rerank", env.rerank_url, env.rerank_model, env.rerank_key)
    return replace(endpoint, timeout_seconds=env.rerank_timeout_seconds)


def query_endpoint(endpoint: Endpoint) -> Endpoint:
    """The same server for one query: a short deadline, and a kind of its own, so that a slow
    query does not make the batches rest."""
    seconds = min(QUERY_TIMEOUT_SECONDS, endpoint.timeout_seconds)
    return replace(endpoint, kind="query", timeout_seconds=seconds)


def _endpoint(kind: str, url: str | None, model: str | None, key: SecretStr | None) -> Endpoint:
    if not url or not model:
        raise ConfigurationError(f"No URL or no model is set for {kind}.")
    secret = key.get_secret_value() if key else ""
    return Endpoint(kind, url, model, secret, settings.ARGUS.model_timeout_seconds)
