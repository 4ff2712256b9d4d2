"""Where the vault lies, whose it is and what may lie in it: the settings, or what a caller puts.

Knows nothing about files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from django.conf import settings

from memory.errors import RefusedError
from memory.models.record import Confidentiality


@dataclass(frozen=True)
class Place:
    """One vault. `owner` is the name of the principal that it belongs to."""

    folder: Path
    owner: str
    confidentiality: Confidentiality = "internal"
    retired: Literal["remove", "keep"] = "remove"
    lowercase: bool = False
    git: bool = False

    @property
    def mark(self) -> str:
        """A number for this vault among others: where it lies and whose it is."""
        told = repr((str(self.folder.resolve()), self.owner))
        return hashlib.sha256(told.encode()).hexdigest()[:24]


class NoVault(RefusedError):
    """No vault: set ARGUS_VAULT to a folder."""

    def __init__(self) -> None:
        super().__init__(reason="no_vault")


_put: ContextVar[Place | None] = ContextVar("vault", default=None)


def place() -> Place:
    """The vault in force. Raises NoVault where there is none."""
    if put := _put.get():
        return put
    argus = settings.ARGUS
    if argus.vault is None:
        raise NoVault
    return Place(
        folder=argus.vault,
        owner=argus.principal,
        confidentiality=argus.vault_confidentiality,
        retired=argus.vault_retired,
        lowercase=argus.vault_lowercase,
        git=argus.vault_git,
    )


def folders() -> tuple[Path, ...]:
    """The vault in force, if anything lies there."""
    try:
        where = place()
    except NoVault:
        return ()
    return (where.folder,) if where.folder.is_dir() else ()


@contextmanager
def around_vault(other: Place) -> Iterator[None]:
    """Another vault than that of the settings: the demo's, a benchmark's, a test's."""
    token = _put.set(other)
    try:
        yield
    finally:
        _put.reset(token)
