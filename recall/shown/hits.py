"""What a recall weighed, told to people: each hit with its title, what became of it and why.

Reads: feedback, note, raw_item. Writes nothing. A hit is told of what the viewer may see alone: of
the rest there is an id and its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from memory.models import Injection, Note, RawItem
from memory.querysets import condition
from memory.web.page import number
from memory.web.viewer import Viewer
from recall.explain import explain
from recall.feedback import Said, feedback_of
from recall.floors import REFUSALS

#: Characters of a turn that stand for its title.
TURN_TITLE_CHARACTERS = 120


#: What notes and turns are called. Parameters: those of what is seen, the ids.
# Why SQL: a page of a recall asks for dozens, each of which is a parameter to a queryset.
TITLES = {
    "note": f"""SELECT id::text, coalesce(nullif(title, ''), left(content, {TURN_TITLE_CHARACTERS}))
    FROM memory_note WHERE {{seen}} AND id = ANY(%s)""",
    "turn": f"""SELECT id::text,
    coalesce(nullif(role, ''), 'turn') || ': ' || left(body, {TURN_TITLE_CHARACTERS})
    FROM memory_rawitem WHERE {{seen}} AND id = ANY(%s)""",
}


#: Hits that are shown until somebody asks for all of them; what went out is always shown.
# Why: what was near enough to be looked at; sixty are a long page.
HITS_SHOWN = 15


#: What became of a hit, and the colour of its tag.
TAGS: Mapping[str, str] = {
    "sent": "ok", "folded": "info", "dropped": "off", "withheld": "warn", "no room": "warn",
}  # fmt: skip


@dataclass(frozen=True)
class HitTold:
    """One hit with what is told of it; `title` "" when it is not the viewer's to see.

    `why` tells what stands behind `fate`, one of TAGS; `numbers` is the hit itself; `said` is what
    the viewer holds of a note.
    """

    source: str
    key: str
    rank: Any
    fate: str
    why: str
    title: str
    numbers: Mapping[str, Any]
    lines: str
    said: Sequence[Said] = ()
    seen: bool = True

    @property
    def tag(self) -> str:
        return TAGS[self.fate]

    @property
    def verdicts(self) -> frozenset[str]:
        return frozenset(said.verdict for said in self.said)


def describe(
    hits: Sequence[Mapping[str, Any]], viewer: Viewer, *, among: Sequence[Mapping[str, Any]]
) -> list[HitTold]:
    """Hits, as the ledger or a reply has them, with titles, fates and words of feedback. `among`
    are all hits of the recall, any of which may stand for one of these."""
    known = titles(((source_of(hit), key_of(hit)) for hit in hits), viewer)
    notes = [UUID(key) for source, key in known if source == "note"]
    said = feedback_of(notes, principal=viewer.principal)
    stands_for = _stands_for(among)
    told = []
    for hit in hits:
        source, key = source_of(hit), key_of(hit)
        fate, why = _fate(hit, stands_for.get(key))
        title = known.get((source, key))
        named = {**hit, "title": title or ""}
        told.append(
            HitTold(
                source=source,
                key=key,
                rank=hit.get("rank"),
                fate=fate,
                why=why,
                title=title or "",
                numbers=hit,
                lines=explain(named) if "score" in hit else "",
                said=said.get(UUID(key), ()) if source == "note" else (),
                seen=title is not None,
            )
        )
    return told


def titles(keys: Iterable[tuple[str, str]], viewer: Viewer) -> dict[tuple[str, str], str]:
    """What these notes and turns are called, of those that the viewer may see."""
    given = set(keys)
    found: dict[tuple[str, str], str] = {}
    for source, rows, number_of in (
        ("note", viewer.rows(Note.objects.all()), UUID),
        ("turn", viewer.rows(RawItem.objects.all()), int),
    ):
        ids = [number_of(key) for kind, key in given if kind == source]
        if not ids:
            continue
        where, params = condition(rows)
        with connection.cursor() as cursor:
            cursor.execute(TITLES[source].format(seen=where), [*params, ids])
            found |= {(source, key): title for key, title in cursor.fetchall()}
    return found


def first_hits(weighed: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What went out of these hits, notes first, and behind it the best of the rest."""
    ordered = sorted(weighed, key=_place)
    sent = sum(bool(hit.get("injected")) for hit in ordered)
    return ordered[: sent + HITS_SHOWN]


def _place(hit: Mapping[str, Any]) -> tuple[bool, bool, int]:
    sent = bool(hit.get("injected"))
    return not sent, sent and source_of(hit) != "note", hit.get("rank") or 0


def hits_of(row: Injection) -> list[Mapping[str, Any]]:
    """The hits of a row, what went out first. A context keeps ids alone, all of which went out; of
    what was opened only the ids are kept. What names neither a note nor a turn, as a row of another
    shape may have it, is no hit."""
    kept = [hit for one in row.hits if (hit := _sound(one))] if isinstance(row.hits, list) else []
    if not kept:
        opened: list[Mapping[str, Any]] = [
            {"note": str(pk), "source": "note", "injected": True} for pk in row.note_ids
        ]
        return opened + [{"turn": pk, "source": "turn", "injected": True} for pk in row.turn_ids]
    sent = {str(pk) for pk in row.note_ids}
    if row.mode == "context":
        return [{**hit, "source": "note", "injected": hit.get("note") in sent} for hit in kept]
    return sorted(kept, key=_place)


#: What a hit tells beside its id, by the type without which it cannot be told.
_SHAPES: Mapping[str, type] = {
    "rank": int, "refused": str, "tracks": dict, "features": dict, "turns": list, "twins": list,
}  # fmt: skip


def _sound(hit: Any) -> Mapping[str, Any]:
    """The hit without what has another shape; nothing where it names no note and no turn."""
    if not isinstance(hit, Mapping) or not _named(source_of(hit), key_of(hit)):
        return {}
    return {
        name: value for name, value in hit.items() if isinstance(value, _SHAPES.get(name, object))
    }


def _named(source: str, key: str) -> bool:
    """Whether the id of a hit is one."""
    if source == "turn":
        return number(key) is not None
    try:
        return str(UUID(key)) == key
    except ValueError:
        return False


def source_of(hit: Mapping[str, Any]) -> str:
    return "turn" if hit.get("turn") is not None else "note"


def key_of(hit: Mapping[str, Any]) -> str:
    return str(hit.get(source_of(hit)))


def _stands_for(hits: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Which hit each folded one went into."""
    return {
        str(key): hit for hit in hits for name in ("turns", "twins") for key in hit.get(name) or ()
    }


def _fate(hit: Mapping[str, Any], into: Mapping[str, Any] | None) -> tuple[str, str]:
    """What became of a hit, and why."""
    if hit.get("injected"):
        return "sent", ""
    if refused := hit.get("refused"):
        return ("dropped" if refused in REFUSALS else "withheld"), refused
    if into is not None:
        return "folded", f"said by {source_of(into)} {key_of(into)[:8]}"
    return "no room", "as many as were asked for came before it, or the block was full"
