"""What was said on Alice's machine, as its hooks post it, and three people who look at the pages.

Through the doors alone: a key posts and runs the stages, browsers look and press. Alice owns, Bob
is in a team with her, Charlie is a stranger; all may decide and operate.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from memory.access import create_key
from memory.models import DedupVerdict, Principal
from tests.factories import three
from tests.web import staff

#: What two later sessions say again, and what a fourth one says otherwise.
PORT = "The staging database `db-staging` uses PostgreSQL 15.6 on port 5433, as production does."
NEWER = "The staging database `db-staging` uses PostgreSQL 16.2 on port 5433, as production does."
SHARED = "We decided to release tidepool from tags only, because main moves too fast."
ASKED = "Which PostgreSQL version does the staging database use, and on which port?"

HARBOR, TIDEPOOL = "/home/dev/src/harbor", "/home/dev/src/tidepool"


@dataclass
class World:
    """Three people with their browsers, and the key by which Alice's machine posts."""

    alice: Principal
    bob: Principal
    charlie: Principal
    owner: Client
    mate: Client
    stranger: Client
    key: str
    #: When the next session was said.
    when: datetime = field(default_factory=lambda: timezone.now() - timedelta(days=20))

    def post(self, path: str, body: object, *, key: str = "") -> dict[str, Any]:
        """What a door of the API answers."""
        client = Client(headers={"authorization": f"Bearer {key or self.key}"})
        answer = client.post(path, json.dumps(body), content_type="application/json")
        assert answer.status_code in (200, 201), answer.content
        got: dict[str, Any] = answer.json()
        return got

    def say(self, session: str, *bodies: str, **fields: Any) -> list[int]:
        """A session of user and assistant in turn, said and ended; the ids of its raw items."""
        self.when += timedelta(days=1)
        items = [
            {
                "source": "claude-code",
                "role": ("user", "assistant")[number % 2],
                "body": body,
                "session": session,
                "cwd": HARBOR,
                "original_timestamp": (self.when + timedelta(minutes=number)).isoformat(),
                **fields,
            }
            for number, body in enumerate(bodies)
        ]
        batch = {
            "items": items,
            "session_end": {"session": session, "reason": "exit"},
            "client": {"name": "argus-hook", "machine": "laptop", "client": "claude-code"},
        }
        got = self.post("/capture", batch)
        assert got["stored"] == len(bodies), got
        return [one["id"] for one in got["items"]]

    def run(self) -> dict[str, Any]:
        """Every stage of the pipeline, once."""
        report = self.post("/process", {})
        assert report["ok"], report
        return report


@pytest.fixture
def world() -> Iterator[World]:
    cache.clear()
    alice, bob, charlie = three()
    key, _ = create_key(owner="alice", scopes=["capture", "recall", "operate", "resolve"])
    owner, mate, stranger = (
        staff("reviewer", "operator", who=who) for who in (alice, bob, charlie)
    )
    yield World(alice, bob, charlie, owner, mate, stranger, key)
    cache.clear()


def see(browser: Client, address: str, status: int = 200) -> str:
    """What a person reads on a page: its own part, without tags."""
    answer = browser.get(address)
    assert answer.status_code == status, (address, answer.content[:400])
    return read(answer.content.decode())


def read(page: str) -> str:
    own = re.search(r'<main id="content".*</main>', page, re.DOTALL)
    page = own[0] if own else page
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", page)).split())


def press(browser: Client, address: str, form: dict[str, Any] | None = None) -> str:
    """What a person reads after a button without script: the page that it leads to."""
    answer = browser.post(address, form or {}, follow=True)
    assert answer.status_code == 200, (address, answer.content[:400])
    return read(answer.content.decode())


def place(name: str, *args: object) -> str:
    return reverse(f"admin:{name}", args=args)


def found(rows: Any, **fields: Any) -> Any:
    """The one row like this, whoever owns it."""
    return rows.as_pipeline().get(**fields)


def hides(world: World, address: str, *words: str, team: bool = False) -> None:
    """None of these words on the stranger's page, and none on the mate's unless the team sees."""
    for browser in (world.stranger,) if team else (world.stranger, world.mate):
        shown = see(browser, address)
        assert not [word for word in words if word in shown], shown


def refuses(world: World, address: str, *, team: bool = False) -> None:
    """The page of this very thing is there for no stranger, and for a mate if the team sees it."""
    see(world.stranger, address, 404)
    see(world.mate, address, 200 if team else 404)


def audited(browser: Client) -> list[str]:
    """What the audit lists for somebody, oldest first: verb, kind, who, door."""
    lines = browser.get(f"{place('audit')}?format=json").getvalue()
    acts = reversed(json.loads(lines))
    return [f"{act['verb']} {act['kind']}, {act['who']} by {act['door']}" for act in acts]


def held(world: World, **fields: Any) -> DedupVerdict:
    """Said once, borne out by two other sessions, then said otherwise: that waits for a person."""
    for day in ("monday", "tuesday", "wednesday"):
        # Other words around it: a copy of a turn bears nothing out.
        world.say(day, "Which database is it?", f"As of {day}: I looked. {PORT}", **fields)
    world.say("thursday", "We upgraded both of them on Monday.", NEWER, **fields)
    world.run()
    row: DedupVerdict = found(DedupVerdict.objects, status="pending")
    return row


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Commands act for this principal."""
    with override_settings(ARGUS=settings.ARGUS.model_copy(update={"principal": name})):
        yield
