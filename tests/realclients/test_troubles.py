"""A server that is away, refuses, stalls or breaks off: the person sees what they see without us.

Each client, in each way that it asks, goes through each trouble with two prompts; the server is
itself again before the second or after it. In the end everything is in the record, once.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memory.models import Injection
from tests.hook.ground import Toll
from tests.realclients.clients import CLAUDE, CODEX, PI, Client, Desk, Ran
from tests.realclients.conftest import Installer, at_hand
from tests.realclients.ground import QUESTION, complaints, holds, settle, stored, told
from tests.realclients.model import Model

#: Each client in each of its ways to ask for memory.
WAYS = {
    "claude-http": (CLAUDE, ("--mode", "http")),
    "claude-command": (CLAUDE, ("--mode", "command")),
    "codex": (CODEX, ()),
    "pi": (PI, ()),
}


def _busy(toll: Toll) -> None:
    toll.mode, toll.status, toll.headers = "status", 429, {"Retry-After": "1"}


def _set(mode: str, status: int = 401) -> Callable[[Toll], None]:
    def spoil(toll: Toll) -> None:
        toll.mode, toll.status = mode, status

    return spoil


#: What can be wrong with the road to the server.
TROUBLES: dict[str, Callable[[Toll], None]] = {
    "down": Toll.close,
    "refusing": _set("status", 401),
    "failing": _set("status", 503),
    "busy": _busy,
    "slow": _set("slow"),
    "html": _set("html"),
    "cut": _set("cut"),
    "lost-reply": _set("lose"),
}

#: Those in which the server stores what it then cannot acknowledge.
REACHED = ("cut", "lost-reply")

FIRST, SECOND = (QUESTION, "Five times."), ("And what does it do then?", "It parks the job.")


def turns(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    """What was said, turn by turn."""
    return [turn for said, answer in pairs for turn in (("user", said), ("assistant", answer))]


def mend(toll: Toll) -> None:
    """The server is itself again."""
    toll.close()
    toll.mode = "pass"
    toll.open()


@pytest.fixture(params=WAYS, ids=list(WAYS))
def way(request: pytest.FixtureRequest) -> tuple[Client, tuple[str, ...]]:
    client, options = WAYS[request.param]
    return at_hand(client), options


@pytest.fixture
def client(way: tuple[Client, tuple[str, ...]]) -> Client:
    """The desk's client is that of the way."""
    return way[0]


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, list[Ran]]:
    """What each client shows without us; filled as it is asked for."""
    return {}


def talk(desk: Desk, pair: tuple[str, str]) -> Ran:
    """One prompt in the session that was last, or in a new one."""
    desk.model.script(pair[1])
    session = desk.session() if desk.transcripts() else ""
    return desk.ask(pair[0], session=session)


def bare(known: dict[str, list[Ran]], desk: Desk) -> list[Ran]:
    """The same two prompts at a desk without Argus; asked once for each client."""
    name = desk.client.name
    if name not in known:
        home = desk.home.parent / "bare"
        other = Desk(desk.client, home, home / "src" / "webshop", desk.model)
        known[name] = [talk(other, FIRST), talk(other, SECOND)]
    return known[name]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_it_costs_the_person_nothing_and_loses_nothing(
    desk: Desk,
    way: tuple[Client, tuple[str, ...]],
    install: Installer,
    toll: Toll,
    trouble: str,
    undisturbed: dict[str, list[Ran]],
) -> None:
    argus = install(desk, *way[1])
    TROUBLES[trouble](toll)
    runs = [talk(desk, FIRST)]
    if trouble not in REACHED:
        assert stored() == []
    if trouble in ("down", "cut", "html"):
        # Over before the second prompt, whose hooks find what is left; else after the session.
        settle(desk)
        mend(toll)
    runs.append(talk(desk, SECOND))
    mend(toll)
    settle(desk)
    argus.flush()
    holds(desk, turns(FIRST, SECOND))
    plain = bare(undisturbed, desk)
    assert [told(run) for run in runs] == [told(run) for run in plain]
    assert [complaints(desk, run) for run in runs] == [complaints(desk, run) for run in plain]


def test_it_tells_afterwards_which_recalls_were_skipped(
    desk: Desk, way: tuple[Client, tuple[str, ...]], install: Installer, toll: Toll
) -> None:
    argus = install(desk, *way[1])
    toll.close()
    talk(desk, FIRST)
    settle(desk)
    toll.open()
    argus.flush()
    settle(desk)
    assert Injection.objects.as_pipeline().filter(outcome="skipped").exists()
    assert stored() == turns(FIRST)


class Dying(Toll):
    """A road that is dead from the second batch of turns on: it takes requests and drops them."""

    def next_mode(self) -> str:
        if not self.posted():
            return "pass"
        self._over.set()
        return "hang"


def test_it_goes_on_where_the_server_died_between_two_batches(
    desk: Desk, install: Installer, toll: Toll, model: Model
) -> None:
    # Why so long: three such answers are more than one batch may hold.
    long = ["long word " * 75_000 + str(n) for n in range(3)]
    before = [(f"Please write long answer number {n}.", answer) for n, answer in enumerate(long)]
    for pair in before:
        talk(desk, pair)
    argus = install(desk)
    toll.requests.clear()
    toll.__class__ = Dying
    talk(desk, FIRST)
    settle(desk)
    assert 0 < len(stored()) < 8
    toll.__class__ = Toll
    mend(toll)
    argus.flush()
    holds(desk, turns(*before, FIRST))
