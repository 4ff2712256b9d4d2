"""A home with the client in it, the real server with a key, and the toll before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argus.hook import bundle
from memory.access import SCOPES, create_key
from tests.hook.ground import Home, Toll, serve


@pytest.fixture(scope="session")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client as `install` unpacks it, once for all tests of a process."""
    target = tmp_path_factory.mktemp("client") / "lib"
    bundle.unpack(str(target))
    return target


@pytest.fixture
def home(tmp_path: Path, lib: Path) -> Home:
    """A home where the client is installed and no server is set."""
    path = tmp_path / "home"
    (path / ".argus").mkdir(parents=True, mode=0o700)
    (path / ".argus" / "lib").symlink_to(lib)
    return Home(path)


@pytest.fixture
def server(clone_db: str) -> Iterator[str]:
    """Argus on a database of its own; its address."""
    with serve() as url:
        yield url


@pytest.fixture
def key(clone_db: str) -> str:
    """A key with every scope."""
    return create_key(owner="me", scopes=SCOPES)[0]


@pytest.fixture
def toll(server: str) -> Iterator[Toll]:
    """The road to the server."""
    road = Toll(server)
    road.open()
    yield road
    road.close()


@pytest.fixture
def wired(home: Home, toll: Toll, key: str) -> Home:
    """A home whose client talks to the server by the toll."""
    home.env(ARGUS_URL=toll.url, ARGUS_KEY=key)
    return home
