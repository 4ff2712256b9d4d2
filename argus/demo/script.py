"""Two replies as a model might give them, so that the gate and the queue of parked units have work.

The local distiller only quotes: it invents nothing and never answers in broken JSON. For two units
of the story a prepared reply stands in for it; what happens to that reply is the real stage's
doing. Knows nothing about the gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from memory.llm.calls import record_local
from memory.llm.ports import Distiller, Draft, Origin, Passage, Usage
from memory.llm.remote.replies import read_candidates
from memory.models import Principal, RawItem

#: The name on every row that came of a prepared reply.
NAME = "scripted-demo"

#: What is said in the unit -> the file with the reply to it.
REPLIES = {
    "Should we move the queue to Kafka one day?": "open-question.txt",
    "https://docs.example.net/payments/sandbox": "cut-off.txt",
}


class Scripted:
    """A distiller that answers for two units from files and asks the inner one for all others."""

    name = NAME
    prompt_version = "1"

    def __init__(self, inner: Distiller, replies: Mapping[int, str]) -> None:
        self.inner = inner
        self.replies = replies

    def distill(self, passages: Sequence[Passage], *, origin: Origin) -> Draft:
        """The candidates of the prepared reply, read as any model's; ContentError likewise."""
        reply = next((r for p in passages if (r := self.replies.get(p.item_id))), None)
        if reply is None:
            return self.inner.distill(passages, origin=origin)
        candidates = tuple(read_candidates(reply))
        usage = Usage(NAME, NAME, self.prompt_version)
        record_local("distill", usage, origin)
        return Draft(candidates, usage, reply)


def prepared(folder: Path, owner: Principal) -> dict[int, str]:
    """The replies by the raw item that each is about; only items of this owner."""
    items = RawItem.objects.visible_to(owner).filter(owner=owner)
    return {
        pk: (folder / name).read_text()
        for said, name in REPLIES.items()
        for pk in items.filter(body__contains=said).values_list("pk", flat=True)
    }
