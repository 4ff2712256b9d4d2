"""Replies as a model might give them, so that the gate and the queue of parked units have work.

The local distiller only quotes: it invents nothing and never answers in broken JSON. For three
units of the story prepared replies stand in for it; what happens to those is the real stage's
doing. Knows nothing about the gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from memory.llm.calls import record_local
from memory.llm.choice import Configured
from memory.llm.kept import Key, keep_reply
from memory.llm.ports import Distiller, Draft, Origin, Passage, Usage
from memory.llm.remote.replies import read_candidates
from memory.models import Principal, RawItem

#: The name on every row that came of a prepared reply.
NAME = "scripted-demo"

#: What is said in the unit -> the files with the replies to it, one a try; the last one stays.
# Why two of the last: by its second try a person has refused to learn what it makes up again.
# What the local distiller quotes of a unit its reply says as well: who replays the story asks that
# one, and finds nothing that it would have learned beside.
REPLIES = {
    "Should we move the queue to Kafka one day?": ("open-question.txt",),
    "https://docs.example.net/payments/sandbox": ("cut-off.txt",),
    "Failover runbook": ("cut-off.txt", "made-up-again.txt"),
}

#: What the first of them makes up, and the last one again.
MADE_UP = "The team plans to move the queue to Kafka."


class Scripted:
    """A distiller that answers for some units from files and asks the inner one for all others."""

    name = NAME
    prompt_version = "1"

    def __init__(self, inner: Distiller, replies: Mapping[int, list[str]]) -> None:
        self.inner = inner
        self.replies = replies

    def distill(self, passages: Sequence[Passage], *, origin: Origin) -> Draft:
        """The candidates of the prepared reply, read as any model's; ContentError likewise."""
        replies = next((r for p in passages if (r := self.replies.get(p.item_id))), None)
        if replies is None:
            return self.inner.distill(passages, origin=origin)
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        candidates = tuple(read_candidates(reply))
        usage = Usage(NAME, NAME, self.prompt_version)
        record_local("distill", usage, origin)
        # As any model's reply that could be read: a rebuild finds it there.
        key = Key.of("distill", NAME, self.prompt_version, [p.body for p in passages])
        keep_reply(key, reply, model_real=NAME, unit=origin.unit)
        return Draft(candidates, usage, reply)


class Prepared(Configured):
    """The ports by the settings, but for the units of the story that have replies."""

    def __init__(self, replies: Mapping[int, list[str]]) -> None:
        self.replies = replies

    def distiller(self, confidentiality: str) -> Distiller:
        return Scripted(super().distiller(confidentiality), self.replies)


def prepared(folder: Path, owner: Principal) -> dict[int, list[str]]:
    """The replies by the raw item that each is about; only items of this owner."""
    items = RawItem.objects.visible_to(owner).filter(owner=owner)
    return {
        pk: [(folder / name).read_text() for name in names]
        for said, names in REPLIES.items()
        for pk in items.filter(body__contains=said).values_list("pk", flat=True)
    }
