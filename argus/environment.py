"""What differs per machine, read once from `ARGUS_*` variables and checked before anything starts.

Knows nothing about Django. The README's table of settings is printed from the fields (`table`).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from memory.errors import ConfigurationError

PREFIX = "ARGUS_"

#: Hosts that only this machine can reach.
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class EnvironmentProblem(ConfigurationError):
    """A setting is wrong. The message names the variable, what was given and what is allowed."""


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("allowed: an http:// or https:// address")
    return value.rstrip("/")


def _database_url(value: SecretStr) -> SecretStr:
    if urlsplit(value.get_secret_value()).scheme not in ("postgres", "postgresql"):
        raise ValueError("allowed: postgresql://USER:PASSWORD@HOST:PORT/NAME")
    return value


def _redis_url(value: SecretStr) -> SecretStr:
    if urlsplit(value.get_secret_value()).scheme not in ("redis", "rediss", "unix"):
        raise ValueError("allowed: redis://USER:PASSWORD@HOST:PORT/NUMBER")
    return value


def _bind(value: str) -> str:
    host, _, port = value.rpartition(":")
    sound = port.isascii() and port.isdigit() and len(port) <= 5
    if not host or not sound or not 1 <= int(port) <= 65535:
        raise ValueError("allowed: HOST:PORT with a port from 1 to 65535")
    return value


def _home(value: Path) -> Path:
    path = value.expanduser()
    if not path.is_absolute():
        raise ValueError("allowed: an absolute path, or one that starts with ~")
    return path


def _within(path: Path, folder: Path) -> bool:
    """Whether the path is that folder or below it, wherever links lead."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


HttpUrl = Annotated[str, AfterValidator(_http_url)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
RedisUrl = Annotated[SecretStr, AfterValidator(_redis_url)]


class Environment(BaseSettings):
    """Every setting of Argus, with its bounds. One field `name` is the variable `ARGUS_NAME`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=None,
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        protected_namespaces=(),
        hide_input_in_errors=True,
    )

    home: Annotated[Path, AfterValidator(_home)] = Field(
        Path("~/.argus"),
        validate_default=True,
        description="Where Argus keeps its data: the secret key and the embedded database.",
    )
    database_url: DatabaseUrl | None = Field(
        None,
        description="The application's database role. Unset: an embedded PostgreSQL of its own.",
    )
    owner_database_url: DatabaseUrl | None = Field(
        None,
        description="The owner's role, for `migrate` and other owner commands. "
        "Needed with ARGUS_DATABASE_URL only. Never by way of a pooler.",
    )
    pooled: bool = Field(
        False,
        description="ARGUS_DATABASE_URL and ARGUS_REPLICA_URL lead through a pooler that gives a "
        "connection for one transaction (pgbouncer: pool_mode = transaction).",
    )
    replica_url: DatabaseUrl | None = Field(
        None,
        description="The application's role at a streaming standby: recall searches there while "
        "it keeps up. Unset: at the primary.",
    )
    replica_lag_seconds: float = Field(
        5.0,
        ge=1,
        le=600,
        description="How far behind a standby may be before recall searches at the primary.",
    )
    secret_key: SecretStr | None = Field(
        None,
        min_length=32,
        description="Signs sessions and queued tasks. Unset: made once in ARGUS_HOME/secret_key.",
    )
    url: HttpUrl = Field(
        "http://127.0.0.1:8765",
        description="The address people and hooks use; allowed hosts and origins come from it.",
    )
    bind: Annotated[str, AfterValidator(_bind)] = Field(
        "127.0.0.1:8765", description="Where the web server listens, HOST:PORT."
    )
    debug: bool = Field(False, description="Django's debug pages; refused off this machine.")
    principal: str = Field(
        "me",
        min_length=1,
        max_length=64,
        pattern=r"^[\w.@+-]+$",
        description="Whom commands act for.",
    )
    model_url: HttpUrl | None = Field(
        None,
        description="OpenAI-compatible chat endpoint (ends in /v1). "
        "Unset: the extractive distiller and the rule judge.",
    )
    model: str | None = Field(None, description="Model name to ask for at ARGUS_MODEL_URL.")
    model_key: SecretStr | None = Field(None, description="Key of ARGUS_MODEL_URL.")
    judge_model: str | None = Field(
        None, description="Model that judges duplicates. Unset: ARGUS_MODEL."
    )
    verify: bool = Field(
        False, description="Ask the model about each candidate before it is kept; needs a model."
    )
    embedder: Literal["minilm", "url"] = Field(
        "minilm", description="The embedder: in this process, or at ARGUS_EMBED_URL."
    )
    embed_url: HttpUrl | None = Field(
        None, description="OpenAI-compatible embeddings endpoint (ends in /v1)."
    )
    embed_model: str | None = Field(None, description="Model name to ask for at ARGUS_EMBED_URL.")
    embed_key: SecretStr | None = Field(None, description="Key of ARGUS_EMBED_URL.")
    rerank_url: HttpUrl | None = Field(
        None,
        description="Where a reranker is served; `/rerank` is put behind it (Cohere, Jina, vLLM, "
        "LiteLLM: ends in /v1; text-embeddings-inference: without). Unset: none.",
    )
    rerank_model: str | None = Field(None, description="Model name to ask for at ARGUS_RERANK_URL.")
    rerank_key: SecretStr | None = Field(None, description="Key of ARGUS_RERANK_URL.")
    rerank_timeout_seconds: float = Field(
        1.0, ge=0.05, le=30, description="How long a recall waits for the reranker."
    )
    rerank_prompts: bool = Field(
        False,
        description="Rerank what is recalled for a prompt, too, not only what is asked on purpose.",
    )
    model_timeout_seconds: float = Field(
        60.0, ge=1, le=600, description="How long one call to a model may take."
    )
    tokens_per_day: int = Field(
        2_000_000,
        ge=0,
        le=1_000_000_000,
        description="Model tokens a day before background work stops, visibly. 0: no model calls.",
    )
    model_confidentiality: Literal["public", "internal", "restricted", "secret"] = Field(
        "internal", description="The highest confidentiality that may leave for a model."
    )
    recall_floor: float = Field(
        0.015, ge=0, le=1, description="The least final score that recall puts before an agent."
    )
    recency_half_life_days: float = Field(
        0.0, ge=0, le=3650, description="Half-life of a note's weight in recall. 0: off."
    )
    impact_share: float = Field(
        0.1, ge=0, le=1, description="Share of injections that are checked for having been used."
    )
    vault: Annotated[Path, AfterValidator(_home)] | None = Field(
        None,
        description="The folder of Markdown files that notes are exported to. Unset: no vault.",
    )
    vault_confidentiality: Literal["public", "internal", "restricted", "secret"] = Field(
        "internal", description="The highest confidentiality that may lie in the vault."
    )
    vault_retired: Literal["remove", "keep"] = Field(
        "remove",
        description="What becomes of a retired note's file: gone, or kept in `_retired/`. One with "
        "words of yours is kept in any case.",
    )
    vault_lowercase: bool = Field(
        False,
        description="Lower-case file names, for devices that tell no case apart.",
    )
    vault_git: bool = Field(
        False, description="Commit each export that changed something, in the vault's repository."
    )
    vault_every_minutes: int = Field(
        15, ge=0, le=1440, description="How often the worker exports. 0: only when it is told to."
    )
    metrics_loopback: bool = Field(
        False,
        description="Give `/metrics` without a key to whoever asks from this machine itself, not "
        "through a proxy.",
    )
    workers: int = Field(2, ge=1, le=64, description="Background worker processes.")
    redis_url: RedisUrl | None = Field(
        None,
        description="A Redis that hands tasks to the workers. Unset: PostgreSQL does. Schedules "
        "and everything else stay in PostgreSQL.",
    )
    process_every_minutes: int = Field(
        5, ge=1, le=1440, description="How often the worker runs the pipeline."
    )
    reconcile_hours: int = Field(
        24,
        ge=0,
        le=8_760,
        description="How often the worker replays a sample of the record against its notes. "
        "0: only when it is told to.",
    )
    reconcile_sample: int = Field(
        20, ge=1, le=10_000, description="Units that one such look distills again."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="The least level that is logged (to standard error)."
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Environment:
        def require(needed: bool, name: str, because: str) -> None:
            if needed and getattr(self, name) is None:
                raise ValueError(f"{PREFIX}{name.upper()} is not set, and {because} needs it")

        require(self.model_url is not None, "model", "ARGUS_MODEL_URL")
        require(self.verify, "model_url", "ARGUS_VERIFY")
        require(self.judge_model is not None, "model_url", "ARGUS_JUDGE_MODEL")
        require(self.embedder == "url", "embed_url", "ARGUS_EMBEDDER=url")
        require(self.embed_url is not None, "embed_model", "ARGUS_EMBED_URL")
        require(self.rerank_url is not None, "rerank_model", "ARGUS_RERANK_URL")
        require(self.rerank_prompts, "rerank_url", "ARGUS_RERANK_PROMPTS")
        require(self.owner_database_url is not None, "database_url", "ARGUS_OWNER_DATABASE_URL")
        require(self.replica_url is not None, "database_url", "ARGUS_REPLICA_URL")
        require(self.pooled, "database_url", "ARGUS_POOLED")
        urls = [one for one in (self.database_url, self.replica_url) if one is not None]
        if len({urlsplit(one.get_secret_value()).path for one in urls}) > 1:
            raise ValueError(
                "ARGUS_REPLICA_URL names another database than ARGUS_DATABASE_URL; allowed: the "
                "same, since a standby is a copy"
            )
        if self.vault is not None and _within(self.home, self.vault):
            raise ValueError(
                f"ARGUS_VAULT is {str(self.vault)!r}, which holds ARGUS_HOME with its keys; "
                "allowed: a folder of its own"
            )
        if self.debug and not self.local:
            raise ValueError(
                "ARGUS_DEBUG shows settings and source to whoever connects; allowed only while "
                "ARGUS_BIND and ARGUS_URL are of this machine (127.0.0.1)"
            )
        return self

    @property
    def local(self) -> bool:
        """Whether nobody but this machine can reach the server."""
        host = self.bind.rpartition(":")[0].strip("[]")
        return host in LOOPBACK and urlsplit(self.url).hostname in LOOPBACK

    @property
    def embedded(self) -> bool:
        """Whether the database is the embedded one."""
        return self.database_url is None


def read() -> Environment:
    """The settings of this process. Raises EnvironmentProblem with one line per wrong value."""
    try:
        return Environment()
    except ValidationError as error:
        lines = [_sentence(dict(problem)) for problem in error.errors()]
        raise EnvironmentProblem("\n".join(lines)) from None


def unknown(environ: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Variables that look like ours and are none: (given, nearest known or "")."""
    known = {PREFIX + name.upper() for name in Environment.model_fields}
    given = sorted(name for name in (environ or os.environ) if name.startswith(PREFIX))
    strange = [name for name in given if name not in known]
    return [(name, next(iter(difflib.get_close_matches(name, known, 1)), "")) for name in strange]


def table() -> str:
    """The README's table of settings, as Markdown."""
    rows = ["| variable | default | what |", "| --- | --- | --- |"]
    for name, field in Environment.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        bounds = _bounds(name)
        what = f"{field.description} {bounds}".strip()
        rows.append(f"| `{PREFIX}{name.upper()}` | {default} | {what} |")
    return "\n".join(rows) + "\n"


def _bounds(name: str) -> str:
    schema = Environment.model_json_schema()["properties"][name]
    if schema.get("type") == "boolean":
        return "Allowed: true, false."
    if "enum" in schema:
        return "Allowed: " + ", ".join(schema["enum"]) + "."
    if "minimum" in schema and "maximum" in schema:
        return f"Allowed: {schema['minimum']:g} to {schema['maximum']:,.10g}."
    return ""


def _sentence(problem: dict[str, object]) -> str:
    location = problem["loc"]
    message = str(problem["msg"]).removeprefix("Value error, ")
    if not isinstance(location, tuple) or not location:
        return message
    name = str(location[0])
    field = Environment.model_fields[name]
    variable = PREFIX + name.upper()
    secret = "Secret" in str(field.annotation)
    given = "a value that is not shown" if secret else repr(os.environ.get(variable, ""))
    allowed = _bounds(name).rstrip(".")
    if message.startswith("allowed") or not allowed:
        allowed = message
    return f"{variable} is {given}; {allowed[0].lower()}{allowed[1:]}."
