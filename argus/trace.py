"""Trace: from what a note or a raw item came, or what it influenced, as a tree.

Composed of the parts of memory, recall and exporter. Reads alone. Every branch is bounded and says
how much of it is left out; what others keep for themselves is counted at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memory import trace as ground
from memory.errors import RefusedError
from memory.models import Injection, Note, Principal, RawItem
from memory.outside import files_of
from memory.text.clean import strip_invisible
from memory.text.seen import one_line
from memory.web.page import number
from recall.shown import trace as recalled

#: Steps from note to parent note that are followed.
# Why: a synthesis of syntheses is two steps; what runs in a circle ends, too.
STEPS_MAX = 5

#: Status of a verdict -> what becomes of the note that goes, and of the one that stays.
OUTCOMES = {
    "applied": ("goes", "stays"),
    "approved": ("goes", "stays"),
    "pending": ("would go", "would stay"),
}

#: Characters of a text in one line.
TEXT_CHARACTERS_MAX = 100


@dataclass(frozen=True)
class Branch:
    """A thing with what hangs on it. `how`: what it is to the one above. Where a list goes on there
    is one of the kind "more" that says by how much."""

    how: str
    kind: str
    id: str = ""
    told: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    branches: tuple[Branch, ...] = ()


def trace(reference: str, *, by: Principal, forward: bool = False) -> Branch:
    """The tree of a note (its uuid) or a raw item (its number): sources, or with `forward` effects.

    Raises RefusedError for what is neither, NotFound for what `by` may not see.
    """
    if pk := number(reference):
        item = ground.item_of(pk, by=by)
        return _item(item, "", _from_item(item, by) if forward else _of_item(item))
    try:
        note_id = UUID(reference)
    except ValueError:
        raise RefusedError(
            f"{reference[:TEXT_CHARACTERS_MAX]!r} is neither a note (a uuid) nor a raw item (a"
            " number): lists and pages name them"
        ) from None
    note = ground.note_of(note_id, by=by)
    return _note(note, "", _from_note(note, by) if forward else _of_note(note, by, {note.pk}))


def _of_item(item: RawItem) -> tuple[Branch, ...]:
    """Whence a raw item came."""
    origin = {"source": item.source, "cwd": item.cwd, "record_id": item.record_id}
    found = [
        Branch("said in", "session", item.session, f"{item.source} {item.cwd}".strip(), origin),
        Branch("captured", "moment", "", _at(item.captured_at)),
    ]
    if item.near_duplicate_of_id:
        found.append(Branch("nearly the same as", "raw item", str(item.near_duplicate_of_id)))
    return tuple(found)


def _of_note(note: Note, by: Principal, above: set[UUID]) -> tuple[Branch, ...]:
    """What a note stands on, what made it, and what it replaced or was replaced by."""
    found = []
    edges = ground.evidence_of(note, by=by)
    for edge in edges.rows:
        if edge.raw_item is not None:
            how = "stands on" if edge.origin == "distill" else f"stands on ({edge.origin})"
            span = {"start": edge.start, "end": edge.end, "quote": edge.quote}
            found.append(_item(edge.raw_item, how, _of_item(edge.raw_item), span))
        elif edge.parent_id not in above and len(above) < STEPS_MAX:
            deeper = _of_note(edge.parent, by, above | {edge.parent_id})
            found.append(_note(edge.parent, "made of", deeper))
        else:
            found.append(_note(edge.parent, "made of"))
    found += _rest("stands on", edges.left_out, edges.hidden)
    made = {"asked": note.model_asked, "prompt": note.prompt_version, "unit": note.unit_key}
    who = note.model_real or "a person"
    if note.run_id:
        found.append(Branch("made by", "run", str(note.run_id), who, made))
    else:
        found.append(Branch("made by", "model", who, "", made))
    for step in recalled.history(note, notes=Note.objects.visible_to(by)):
        if note.pk not in (step.new.pk, step.old.pk):
            continue
        other = step.old if step.new.pk == note.pk else step.new
        told = f"{step.row.verdict} ({step.row.status})"
        if verb := OUTCOMES.get(step.row.status):
            told += f": it {verb[step.kept.pk == note.pk]}"
        found.append(
            Branch("judged", "verdict", str(step.row.pk), told, {}, (_note(other, "with"),))
        )
    return tuple(found)


def _from_item(item: RawItem, by: Principal) -> tuple[Branch, ...]:
    """What a raw item was made into, with what came of each note; tasks; recalls of its words."""
    notes = ground.notes_of(item, by=by)
    found = [_note(note, "gave", _from_note(note, by)) for note in notes.rows]
    found += _rest("gave", notes.left_out, notes.hidden)
    tasks = ground.tasks_of(item, by=by)
    found += [Branch("opened", "task", str(task.pk), _short(task.title)) for task in tasks.rows]
    found += _rest("opened", tasks.left_out, 0)
    told = Injection.objects.visible_to(by).filter(turn_ids__contains=[item.pk])
    found += _injections(recalled.counted(told, told.order_by("-pk")))
    return tuple(found)


def _from_note(note: Note, by: Principal) -> tuple[Branch, ...]:
    """Verdicts that others went by, notes made of it, recalls, sessions, files of the vault."""
    did = recalled.trace(
        note, notes=Note.objects.visible_to(by), injections=Injection.objects.visible_to(by)
    )
    found = [_note(one, "retired") for one in did.retired.rows]
    found += _more("retired", did.retired)
    found += [_note(one, "made into") for one in did.children.rows]
    found += _more("made into", did.children)
    if did.apart:
        found.append(Branch("left alone beside", "more", "", f"{did.apart} notes"))
    found += _injections(did.injections)
    for session in did.sessions.rows:
        told = f"{session.times} times, last in injection {session.last}"
        found.append(Branch("told to", "session", session.name, told))
    found += _more("told to", did.sessions)
    for file in files_of(note.pk, by):
        found.append(Branch("lies in", "file", file.path, f"since {_at(file.written_at)}"))
    return tuple(found)


def _injections(some: recalled.Counted) -> list[Branch]:
    found = []
    for row in some.rows:
        told = f"{row.mode} {_at(row.created_at)}, {row.outcome}"
        detail = {"session": row.session, "query": row.query, "cwd": row.cwd}
        found.append(Branch("put before an agent in", "injection", str(row.pk), told, detail))
    return found + _more("put before an agent in", some)


def _note(note: Note, how: str, branches: tuple[Branch, ...] = ()) -> Branch:
    gone = f"{note.retired_reason or 'retired'} {_at(note.deleted_at)}" if note.deleted_at else ""
    detail = {"content": note.content, "confidence": note.confidence, "level": note.level}
    told = f"{_short(note.title)}{f'  [{gone}]' if gone else ''}"
    return Branch(how, "note", str(note.pk), told, detail, branches)


def _item(
    item: RawItem, how: str, branches: tuple[Branch, ...], span: dict[str, Any] | None = None
) -> Branch:
    who = " of ".join(one for one in (item.kind, item.role) if one)
    words = span["quote"] if span else item.body
    told = f"{item.source} {who}, {_at(item.occurred_at)}: {_short(words)}"
    return Branch(how, "raw item", str(item.pk), told, span or {}, branches)


def _rest(how: str, left_out: int, hidden: int) -> list[Branch]:
    found = [Branch(how, "more", "", f"{left_out} more")] if left_out else []
    return found + ([Branch(how, "more", "", f"{hidden} of others")] if hidden else [])


def _more(how: str, some: recalled.Counted) -> list[Branch]:
    total = int(some.total.replace(",", "").rstrip("+") or 0)
    if total <= len(some.rows) and not some.total.endswith("+"):
        return []
    return [Branch(how, "more", "", f"{some.total} in all")]


def _at(moment: Any) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    cut = f"{line[: TEXT_CHARACTERS_MAX - 1]}…" if len(line) > TEXT_CHARACTERS_MAX else line
    return str(strip_invisible(cut)[0])


def as_json(branch: Branch) -> dict[str, Any]:
    """The tree as nested objects; what is empty is left out."""
    fields = {"how": branch.how, "kind": branch.kind, "id": branch.id, "told": branch.told,
              "detail": branch.detail}  # fmt: skip
    told: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if branch.branches:
        told["branches"] = [as_json(one) for one in branch.branches]
    return told


def lines(branch: Branch) -> Iterator[str]:
    """The tree for people."""
    yield _line(branch)
    yield from _below(branch.branches, "")


def _below(branches: Sequence[Branch], indent: str) -> Iterator[str]:
    for place, one in enumerate(branches, 1):
        last = place == len(branches)
        yield f"{indent}{'└─' if last else '├─'} {_line(one)}"
        yield from _below(one.branches, f"{indent}{'   ' if last else '│  '}")


def _line(branch: Branch) -> str:
    if branch.kind in ("more", "moment"):
        return f"{branch.how} {branch.told}"
    words = (branch.how, branch.kind, branch.id or "(unnamed)")
    said = one_line(" ".join(one for one in words if one))
    return f"{said}  {one_line(branch.told)}".rstrip()
