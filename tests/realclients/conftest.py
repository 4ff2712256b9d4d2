"""The real clients, a model that says what a script says, and the real server.

Without the clients' programs every test here is skipped: `make test-clients` installs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argus.hook import bundle
from tests.hook.conftest import key, server, toll
from tests.hook.ground import Toll
from tests.realclients.clients import CLAUDE, CLIENTS, CODEX, PI, Client, Desk
from tests.realclients.ground import Argus, remember, settle
from tests.realclients.model import Model, listening

#: Where Claude Code's screen looks for its own plugins; refused, as everybody is.
OWN_HOSTS = ("downloads.claude.ai:443", "github.com:443")

__all__ = ["key", "server", "toll"]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client's one file, as the server hands it out."""
    path = tmp_path_factory.mktemp("download") / "argus-hook.pyz"
    path.write_bytes(bundle.build())
    return path


@pytest.fixture
def model() -> Iterator[Model]:
    """The model of this test; afterwards it is asked whether anybody tried to go past it."""
    with listening() as model:
        yield model
    assert set(model.strayed) <= set(OWN_HOSTS)


def at_hand(client: Client) -> Client:
    """This client, or a skip that says how to get it."""
    if not client.program.exists():
        pytest.skip(f"{client.name} is not installed: run `make test-clients`")
    return client


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    """Each client in turn."""
    return at_hand(request.param)


def _desk(client: Client, tmp_path: Path, model: Model) -> Desk:
    home = tmp_path / "home"
    return Desk(at_hand(client), home, home / "src" / "webshop", model)


@pytest.fixture
def desk(client: Client, tmp_path: Path, model: Model) -> Desk:
    """A desk with each client in turn, without Argus."""
    return _desk(client, tmp_path, model)


@pytest.fixture
def claude(tmp_path: Path, model: Model) -> Desk:
    return _desk(CLAUDE, tmp_path, model)


@pytest.fixture
def codex(tmp_path: Path, model: Model) -> Desk:
    return _desk(CODEX, tmp_path, model)


@pytest.fixture
def pi(tmp_path: Path, model: Model) -> Desk:
    return _desk(PI, tmp_path, model)


class Installer:
    """Installs at desks, all for one server."""

    def __init__(self, archive: Path, url: str, key: str) -> None:
        self.archive, self.url, self.key = archive, url, key
        self.done: list[Argus] = []

    def __call__(self, desk: Desk, *options: str, trust: bool = True) -> Argus:
        argus = Argus(self.archive, desk)
        argus.install(self.url, self.key, *options, trust=trust)
        self.done.append(argus)
        return argus


@pytest.fixture
def install(archive: Path, toll: Toll, key: str) -> Iterator[Installer]:
    """What puts Argus on a desk, with something to remember; nothing of it outlives the test."""
    remember()
    installer = Installer(archive, toll.url, key)
    yield installer
    # Why first: what still waits for an answer must not hold the test's end.
    toll.close()
    for argus in installer.done:
        settle(argus.desk)
