"""From hits to results: each statement once, a note before the turn it came from, words to read.

Reads: evidence, raw_item, dedup_verdict, note. Shared by prompt recall and by queries. Knows
nothing about floors or ledgers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.db.models.functions import Left

from memory.models import DedupVerdict, Evidence, Principal, RawItem
from memory.searchtexts import speaker
from memory.text.words import normalise
from recall.excerpt import LOOKED_AT_CHARACTERS_MAX, excerpt
from recall.reader import reader
from recall.reranking import Reranking, rerank
from recall.scoring import Hit
from recall.search import COLUMNS, Searched
from recall.states import stale

#: What is read of a note that is shown.
NOTE_READ = (
    "id", "title", "content", "context", "tags", "importance", "confidence", "memory_kind",
    "said_by", "project_id", "valid_from", "valid_to", "content_key", "session", "owner_id",
    "confidentiality", "project__name", "owner__name",
)  # fmt: skip


def fold(hits: Sequence[Hit]) -> list[Hit]:
    """Each statement once, where its best hit stands: notes of the same content, turns of the same
    words, and a turn with the best of the notes that were made of it, which stands in its place
    and names it."""
    notes = {hit.key: hit for hit in hits if hit.source == "note"}
    turns = {hit.key for hit in hits if hit.source == "turn"}
    cited: dict[Any, list[int]] = {}
    if notes and turns:
        edges = Evidence.objects.filter(note__in=notes, raw_item__in=turns)
        for note, item in edges.order_by("pk").values_list("note", "raw_item"):
            cited.setdefault(note, []).append(item)
    stands_for = {
        item: note for key, note in reversed(notes.items()) for item in cited.get(key, ())
    }
    names = _same_words([hit for hit in hits if hit.source == "turn"])
    kept: dict[tuple[str, Any], Hit] = {}
    placed: set[Any] = set()
    for hit in hits:
        hit = stands_for.get(hit.key, hit)
        if hit.key in placed:
            continue
        placed.add(hit.key)
        if hit.source == "note":
            name: tuple[str, Any] = ("note", hit.facts["content_key"])
            hit = replace(hit, turns=tuple(dict.fromkeys(cited.get(hit.key, ()))))
        else:
            name = ("turn", names.get(hit.key, hit.key))
        if (first := kept.get(name)) is None:
            kept[name] = hit
        else:
            twins = (*first.twins, str(hit.key))
            both = tuple(dict.fromkeys((*first.turns, *hit.turns)))
            kept[name] = replace(first, twins=twins, turns=both)
    return list(kept.values())


def _same_words(turns: Sequence[Hit]) -> dict[Any, str]:
    """What those turns say that have the terms of another one, which may have them in another
    order: "from 1 to 2" is not "from 2 to 1"."""
    many = Counter(hit.found.content for hit in turns)
    alike = [hit.key for hit in turns if many[hit.found.content] > 1]
    if not alike:
        return {}
    # What the reader may see was settled when these were found.
    rows = RawItem.objects.as_pipeline().filter(pk__in=alike)
    said = rows.annotate(said=Left("body", LOOKED_AT_CHARACTERS_MAX)).values_list("pk", "said")
    return {pk: normalise(body) for pk, body in said}


def read(
    hits: Sequence[Hit],
    searched: Searched,
    *,
    principal: Principal,
    here: int | None,
    now: datetime,
    past: bool = False,
) -> list[Hit]:
    """The hits with what a reader is told: of a note whose it is and whether it is disputed (and,
    asked about the past, what became of it), of a turn who said it and the words that fit.

    What may be shown no more, since it was found, is left out. `here` is the project that asks.
    """
    keys = [hit.key for hit in hits if hit.source == "note"]
    rows = searched.pools["note"].filter(pk__in=keys).values(*NOTE_READ) if keys else []
    notes = told(list(rows), principal=principal)
    if past and notes:
        notes = stale(notes, who=reader(principal, here), now=now)
    by_key = {row["id"]: row for row in notes} | _turns(hits, searched, principal)
    return [hit.with_facts(by_key[hit.key]) for hit in hits if hit.key in by_key]


def _turns(
    hits: Sequence[Hit], searched: Searched, principal: Principal
) -> dict[Any, dict[str, Any]]:
    facts: Mapping[Any, Mapping[str, Any]] = {
        hit.key: hit.facts for hit in hits if hit.source == "turn"
    }
    if not facts:
        return {}
    standing = searched.pools["turn"].filter(raw_item__in=list(facts)).values("raw_item")
    rows = (
        RawItem.objects.visible_to(principal)
        .filter(pk__in=standing)
        .annotate(said=Left("body", LOOKED_AT_CHARACTERS_MAX))
        .values("id", "kind", "role", "source", "session", "metadata", "said", "confidentiality")
    )
    return {
        row["id"]: {
            **facts[row["id"]],
            "id": row["id"],
            "kind": row["kind"],
            "role": row["role"],
            "confidentiality": row["confidentiality"],
            "session": row["session"],
            "source": row["source"],
            "speaker": speaker(row["metadata"]),
            "excerpt": excerpt(row["said"], searched.question.words),
            "shared_by": ""
            if facts[row["id"]]["owner_id"] == principal.pk
            else facts[row["id"]]["owner__name"],
        }
        for row in rows
    }


def told(rows: Sequence[Mapping[str, Any]], *, principal: Principal) -> list[dict[str, Any]]:
    """These notes with what a reader must know beside them: whose they are, when not the reader's
    own (`shared_by`), and whether a supersession of them waits for a person (`disputed`)."""
    if not rows:
        return []
    ids = [row["id"] for row in rows]
    pending = DedupVerdict.objects.as_pipeline().filter(
        Q(note__in=ids) | Q(target__in=ids), status="pending"
    )
    held = {pk for pair in pending.values_list("note", "target") for pk in pair}
    return [
        {
            **row,
            "shared_by": "" if row["owner_id"] == principal.pk else row["owner__name"],
            "disputed": row["id"] in held,
        }
        for row in rows
    ]


def as_json(hit: Hit, rank: int, *, explain: bool, injected: bool = True) -> dict[str, Any]:
    """One result for a client: what it says and where it is from; with `explain`, every number."""
    numbers = hit.as_json(rank=rank, injected=injected)
    facts = hit.facts
    if hit.source == "note":
        more = {
            "id": str(facts["id"]),
            **{name: facts[name] for name in _NOTE_TOLD},
            "project": facts["project__name"],
            "valid_from": facts["valid_from"].isoformat(),
            "state": facts.get("state", "live"),
            "replaced_by": facts.get("replaced_by"),
        }
    else:
        more = {
            **{name: facts[name] for name in _TURN_TOLD},
            "project": facts["project__name"],
            "occurred_at": facts["at"].isoformat(),
            "state": hit.state,
        }
    short = {name: numbers[name] for name in ("source", "rank", "score", "turns", "refused")}
    return {**(numbers if explain else short), **more}


def second_opinion(
    searched: Searched,
    hits: Sequence[Hit],
    *,
    principal: Principal,
    here: int | None,
    prompt: bool,
) -> tuple[list[Hit], Reranking]:
    """Hits that were read, in a reranker's order where one is asked; what it made of each is in
    what is told of it (`reranked_score`). What was retired or silenced while it was asked is left
    out."""
    ordered, said = rerank(
        searched.question.text,
        hits,
        text=lambda hit: (
            hit.facts.get("excerpt") or f"{hit.facts['title']}\n{hit.facts['content']}"
        ),
        confidentiality=lambda hit: hit.facts["confidentiality"],
        prompt=prompt,
    )
    if said.reranked:
        ordered = [
            hit.with_facts({**hit.facts, "reranked_score": score})
            for hit, score in zip(ordered, said.scores, strict=True)
        ]
    # Only a call to a server takes so long that the world has changed meanwhile.
    asked = bool(said.shown)
    return (_standing(ordered, searched, principal, here) if asked else ordered), said


def _standing(
    hits: Sequence[Hit], searched: Searched, principal: Principal, here: int | None
) -> list[Hit]:
    """Those that may still be shown, by the rows and the feedback of this moment."""
    who = reader(principal, here)
    out = {*who.notes_out, *who.turns_out}
    kept: set[Any] = set()
    for source, column in COLUMNS:
        keys = [hit.key for hit in hits if hit.source == source and hit.key not in out]
        if keys:
            rows = searched.pools[source].filter(**{f"{column}__in": keys})
            kept.update(rows.values_list(column, flat=True))
    return [hit for hit in hits if hit.key in kept]


_NOTE_TOLD = (
    "title", "content", "context", "said_by", "confidence", "tags", "shared_by", "disputed",
)  # fmt: skip
_TURN_TOLD = ("id", "kind", "role", "speaker", "session", "excerpt", "shared_by")
