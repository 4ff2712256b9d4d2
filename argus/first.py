"""The first steps: from an empty Argus to the first note, each ticked by rows and not by clicks.

Reads: access_key, capture_receipt, injection, raw_item, note. Knows nothing about pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memory.models import AccessKey, CaptureReceipt, Injection, Note, Principal, RawItem


@dataclass(frozen=True)
class Steps:
    """How far somebody is. `heard_at`: when a hook was heard first, by a use of a key, a recall or
    a post; `captured` is the newest raw item, `note` the first note."""

    key: AccessKey | None
    heard_at: datetime | None
    machine: str
    captured: RawItem | None
    note: Note | None

    @property
    def done(self) -> bool:
        return self.note is not None

    @property
    def current(self) -> int:
        """The number of the step that is next, from 1; 5 when all are done."""
        for number, there in enumerate((self.key, self.heard_at, self.captured, self.note), 1):
            if not there:
                return number
        return 5


def steps(principal: Principal) -> Steps:
    """How far this principal is: its own rows alone, for its own hooks are what is set up."""
    keys = AccessKey.objects.filter(principal=principal, revoked_at=None)
    able = keys.filter(scopes__contains=["capture"]).order_by("-pk").first()
    posts = CaptureReceipt.objects.visible_to(principal).order_by("-pk")
    post = posts.only("client", "created_at").first()
    recall = Injection.objects.visible_to(principal).order_by("-pk")
    used = keys.exclude(last_used_at=None).order_by("last_used_at")
    moments = [
        used.values_list("last_used_at", flat=True).first(),
        post.created_at if post else None,
        recall.values_list("created_at", flat=True).first(),
    ]
    items = RawItem.objects.as_pipeline().filter(owner=principal).order_by("-pk")
    notes = Note.objects.as_pipeline().filter(owner=principal).order_by("created_at")
    return Steps(
        key=able,
        heard_at=min((one for one in moments if one), default=None),
        machine=str(post.client.get("machine", "")) if post else "",
        captured=items.only("id", "source", "session", "captured_at").first(),
        note=notes.only("id", "title", "created_at").first(),
    )


def is_empty(principal: Principal) -> bool:
    """Whether this principal has nothing yet and nothing is shown to it: then the first steps come
    before the board."""
    if RawItem.objects.as_pipeline().filter(owner=principal).exists():
        return False
    return not Note.objects.visible_to(principal).exists()


def has_no_note(principal: Principal) -> bool:
    """Whether the first steps are not at their end."""
    return not Note.objects.as_pipeline().filter(owner=principal).exists()
