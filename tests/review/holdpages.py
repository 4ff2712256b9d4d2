"""What the tests of the pages of holds share: held verdicts, their addresses, what a page shows."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from memory.models import DedupVerdict, Principal
from tests.factories import at, note, verdict

OLD = "The staging server listens on port 8443."
NEW = "The staging server listens on port 9443."


def held(owner: Principal, *, days: float = 0, visibility: str = "private") -> DedupVerdict:
    old = note(owner, OLD, confidence=0.755, visibility=visibility, when=at(days=days))
    new = note(owner, NEW, when=at(days=days + 1), visibility=visibility)
    return verdict(new, old, similarity=0.913, reasoning="The port changed.", model_real="judge-7")


def url(row: DedupVerdict, verb: str = "") -> str:
    if verb:
        return reverse("admin:review-decide", args=[row.pk, verb])
    return reverse("admin:review-hold", args=[row.pk])


def text(response: Any) -> str:
    body: str = response.content.decode()
    return body


def shown(response: Any) -> int | None:
    """The verdict on the card."""
    hold = response.context["hold"]
    return hold.verdict.pk if hold else None


QUEUE = reverse("admin:review")
LIST = f"{QUEUE}?view=list"
