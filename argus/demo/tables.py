"""The story as plain text, 100 columns wide. Pure: values in, lines out.

Knows nothing about the database, and counts nothing but what fits on a line.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from argus.demo.script import NAME
from argus.demo.story import HARBOR, TIDEPOOL, VISITOR, Story
from recall.notes import Recalled

#: Columns of a terminal that every line fits into.
LINE_COLUMNS_MAX = 100

#: Columns of why a candidate was refused: what it says stands behind that.
WHY_COLUMNS_MAX = 26

#: Hits shown of an answer, and of a silence.
HITS_SHOWN, MISSES_SHOWN = 6, 3

#: Files of the vault that were left alone, told by name.
TROUBLES_SHOWN = 3

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """A heading and the lines below it."""

    heading: str
    lines: list[str]


def pages(story: Story) -> Iterator[Page]:
    """One page a stage, in the order of the stages; then the relations, and where to look next."""
    yield _capture(story.files, story.rows["capture"])
    yield _segment(story.rows["segment"])
    yield _distill(story.rows["distill"])
    yield _embed(story.rows["embed"])
    yield _dedup(story.rows["dedup"])
    yield _track(story.rows["track"])
    yield from _recalls(story)
    yield _export(story.rows["export"])
    yield _runs(story)
    yield _next(story)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Columns as wide as they need; numbers to the right; the last one is cut at the line's end."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [all(isinstance(row[n], int | float) for row in rows) for n in range(len(heads))]
    widths = [max(map(columns, (head, *(r[n] for r in cells)))) for n, head in enumerate(heads)]
    lines = []
    for line in (heads, *cells):
        padded = [
            " " * (width - columns(cell)) + cell if right else cell + " " * (width - columns(cell))
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ]
        lines.append(clip("  " + "  ".join(padded).rstrip()))
    return lines


def columns(text: str) -> int:
    """How wide a terminal shows it: Chinese characters take two columns."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def clip(text: str, most: int = LINE_COLUMNS_MAX) -> str:
    """One line of at most so many columns."""
    text = " ".join(text.splitlines())
    if columns(text) <= most:
        return text
    while columns(text) > most - 3:
        text = text[:-1]
    return text.rstrip() + "..."


def _capture(files: Row, record: Row) -> Page:
    heads = ("source", "sessions", "turns", "documents")
    body = table(
        heads, [[s["source"], s["sessions"], s["turns"], s["others"]] for s in record["sources"]]
    )
    news = f"{files['stored']} stored, {files['duplicates']} known before or copied"
    if not files["stored"]:
        news = f"nothing stored: all {files['duplicates']} items were there already"
    return Page(
        "CAPTURE: files become raw items, which nobody can change any more",
        [
            *body,
            *said("this run", f"{files['files']} files, {news}"),
            *said(
                "receipts",
                f"{record['seen']} seen = {record['stored']} stored + {record['duplicates']} "
                f"duplicates + {sum(record['refused'].values())} refused",
            ),
            *said("refused", counts(record["refused"])),
            *said("redacted", counts(record["redacted"])),
            *said("filtered", f"{counts(files['refused'])} (by readers and capture, this run)"),
            *said("no turns", f"{counts(files['skipped'])} (left out by the readers)"),
        ],
    )


def _segment(row: Row) -> Page:
    projects = [
        [one["name"] or "(none)", one["project_method"] or "-", one["episodes"]]
        for one in row["projects"]
    ]
    looks = ", ".join(
        f"{c['check_kind']} {c['looked']} ({c['fired']} fired)" for c in row["checks"]
    )
    return Page(
        "SEGMENT: turns of a session become closed episodes of one project",
        [
            *table(("project", "found by", "episodes"), projects),
            *said("episodes", f"{row['episodes']} of {row['turns']} turns"),
            *said("ended by", counts(row["reasons"])),
            *said("looked for", looks or "nothing"),
        ],
    )


def _distill(row: Row) -> Page:
    notes = [
        [
            one["name"] or "(none)", f"{one['valid_from']:%d %b}", one["said_by"],
            one["retired_reason"] or "live", one["title"],
        ]
        for one in row["shown"]
    ]  # fmt: skip
    refused = [
        [
            one["reason"],
            clip(one["detail"], WHY_COLUMNS_MAX),
            one["model_real"],
            one["candidate"]["content"],
        ]
        for one in row["rejections"]
    ]
    lines = [*table(("project", "said", "by", "state", "title (the most important)"), notes)]
    lines += said("notes", f"{row['notes']}, each with the span of the record that it quotes")
    lines += said("made by", counts(row["distillers"]))
    if refused:
        lines += ["", *table(("refused as", "because", "proposed by", "candidate"), refused)]
    for one in row["parked"]:
        lines += said("parked", f"{one['what']}: {one['failures']} failures, {one['reason']}")
    if NAME in {one["model_real"] for one in row["rejections"]}:
        lines += said(
            "scripted",
            f"{NAME} is replies written by hand as a model might give them "
            "(tests/fixtures/demo-replies), because the local distiller only quotes: it invents "
            "nothing, and its answers can be read. What became of them is the gate's and the "
            "queue's own doing.",
        )
    return Page(
        "DISTILL: episodes become notes; the gate refuses what the record does not say", lines
    )


def _embed(row: Row) -> Page:
    lines = [
        *said("indexed", counts(row["indexed"])),
        *said("notes", counts(row["notes"])),
        *said("raw items", counts(row["turns"])),
    ]
    return Page("EMBED: the search index, and vectors by the embedder that made them", lines)


def _dedup(row: Row) -> Page:
    kinds = [[one["verdict"], one["status"], one["n"]] for one in row["kinds"]]
    lines = [
        *table(("verdict", "status", "notes"), kinds),
        *said("judged by", counts(row["judges"]) + " (none: nothing was near)"),
    ]
    held = [one for one in row["told"] if one["status"] == "pending"]
    done = [one for one in row["told"] if one["status"] == "applied"]
    lines += said(
        "held", f"{len(held)} wait for a person, because others had said the old one, too"
    )
    for one in held:
        lines += _verdict(one)
    for kind in ("supersede", "refine", "duplicate"):
        if one := next((d for d in done if d["verdict"] == kind), None):
            lines += said("applied", f"for example this {kind}")
            lines += _verdict(one)
    return Page("DEDUP: what each new note is to the older ones", lines)


def _track(row: Row) -> Page:
    heads = ("status", "opened by", "project", "what")
    told = [[one["status"], one["opening"], one["project"], one["title"]] for one in row["tasks"]]
    lines = table(heads, told) if told else ["  nothing was promised or asked for"]
    return Page("TRACK: what was promised or asked for, and what the record shows of it", lines)


def _export(row: Row) -> Page:
    report = {word: n for word, n in row["report"].items() if isinstance(n, int) and n}
    lines = said("vault", f"{row['vault']}    (open it in Obsidian, or with cat)")
    lines += said("counted", counts(report))
    for trouble in row["report"]["troubles"][:TROUBLES_SHOWN]:
        lines += said("left alone", f"{trouble['path']}: {trouble['why']}")
    lines += [clip(f"      {path}") for path in row["shown"]]
    if (more := row["files"] - len(row["shown"])) > 0:
        lines.append(f"      ... and {more} more")
    return Page("EXPORT: live notes become files in a vault of Markdown", lines)


def _verdict(row: Row) -> list[str]:
    confidence = f"confidence {row['old_confidence']:.2f}"
    if (after := row["confidence_after"]) is not None:
        confidence = f"confidence {row['confidence_before']:.2f}, of the one that stays {after:.2f}"
    return [
        clip(f"    #{row['pk']} {row['verdict']}, {confidence}; {row['reasoning']}"),
        clip(f"       old  {row['old']}"),
        clip(f"       new  {row['new']}"),
    ]


def _recalls(story: Story) -> Iterator[Page]:
    for prompt, recalled in story.recalls:
        asked = recalled.asked
        lines = [
            *said("where", HARBOR),
            *said("outcome", recalled.outcome),
            *said("gates", f"{asked.gate}: {asked.detail}" if asked.gate else "passed"),
            *_floors(recalled),
            *_hits(recalled),
            *said("ledger", f"injection {recalled.injection}, {recalled.milliseconds:.0f} ms"),
            *_block(recalled.text),
        ]
        yield Page(f"RECALL: {prompt}", lines)
    context = story.context
    lines = [*said("outcome", context.outcome), *said("ledger", f"injection {context.injection}")]
    title = f"CONTEXT: what a session in {TIDEPOOL} starts with, without any model"
    yield Page(title, [*lines, *_block(context.text)])


def _floors(recalled: Recalled) -> list[str]:
    """What a note must reach; a turn more."""
    lines = []
    for source, floors in recalled.floors_told.items():
        told = ", ".join(f"{name} {floor:g}" for name, floor in floors.items())
        lines += said("floors", f"of a {source}: {told}")
    return lines


def _hits(recalled: Recalled) -> list[str]:
    """The best hits with their rank and score in each track, and what became of each."""
    sent = {hit.key for hit in recalled.hits}
    rows = []
    for rank, hit in enumerate(recalled.weighed[: HITS_SHOWN if sent else MISSES_SHOWN], start=1):
        tracks = [
            f"{at.score:.3f} #{at.rank}" if (at := hit.found.tracks.get(name)) else "-"
            for name in ("semantic", "keyword")
        ]
        fate = "sent" if hit.key in sent else "below" if hit.judged.refused else "folded"
        if hit.withheld:
            fate = "withheld"
        what = hit.facts.get("title") or hit.facts.get("excerpt") or f"raw item {hit.key}"
        rows.append([rank, f"{hit.score:.4f}", *tracks, fate, hit.source, what])
    if not rows:
        return []
    more = len(recalled.weighed) - len(rows)
    return [
        *table(("", "score", "semantic", "keyword", "fate", "source", "what it says"), rows),
        *([f"      ... and {more} more"] if more else []),
    ]


def _block(text: str) -> list[str]:
    """What goes to an agent, folded and whole."""
    return [
        folded
        for line in text.splitlines()
        for folded in textwrap.wrap(
            line, LINE_COLUMNS_MAX - 8, initial_indent="  | ", subsequent_indent="  |   "
        )
    ]


def _runs(story: Story) -> Page:
    runs = [
        [run["stage"], run["status"], run["milliseconds"], counts(_flat(run["report"]))]
        for run in story.rows["runs"]
    ]
    lines = table(("stage", "status", "ms", "report"), runs) if runs else ["  none"]
    lines.append("")
    lines += [f"  {'yes' if held else 'NO '}  {what}" for what, held in story.checks.items()]
    return Page("THIS RUN, and what must hold between the rows", lines)


def _next(story: Story) -> Page:
    act = "" if story.owner == settings.ARGUS.principal else f"ARGUS_PRINCIPAL={story.owner} "
    run = f"{act}.venv/bin/python manage.py"
    again = f"as shown the first time (another: {run} changepassword {VISITOR})"
    password = f"password {story.password}" if story.password else again
    lines = [
        *said("serve", f"make up    ({settings.ARGUS.url}/ui/)"),
        *said("log in", f"{VISITOR}, {password}"),
        *said("holds", f"{run} hold list    (approve, reject and undo take the number)"),
        *said("recall", f'{run} recall "..." --cwd {HARBOR}'),
        *said(
            "vault",
            f"{act}ARGUS_VAULT={story.rows['export']['vault']} .venv/bin/python manage.py export",
        ),
        *said("yours", ".venv/bin/python manage.py capture ~/.claude/projects    (then: process)"),
        *said(
            "whose",
            f"The demo is the memory of “{story.owner}”, apart from yours, in {story.place}.",
        ),
    ]
    return Page("WHERE TO LOOK NEXT" if story.ok else "THE STORY DID NOT COME OUT", lines)


def said(word: str, text: str) -> list[str]:
    """A word and what is to say about it, folded."""
    return textwrap.wrap(
        text, LINE_COLUMNS_MAX, initial_indent=f"  {word:<12}  ", subsequent_indent=" " * 16
    )


def counts(tally: Mapping[str, object]) -> str:
    """`word number` pairs; `nothing` when there are none."""
    return ", ".join(f"{_word(word)} {number}" for word, number in tally.items()) or "nothing"


def _flat(report: Row) -> dict[str, object]:
    """A report in one level, counts before reasons, zeros left out."""
    flat: dict[str, object] = {
        word: n for word, n in report.items() if n and isinstance(n, int | float)
    }
    for word, nested in report.items():
        if isinstance(nested, dict):
            flat |= {f"{word}: {reason}": n for reason, n in nested.items()}
    return flat


def _word(word: str) -> str:
    return word.replace("_", " ") or "(none)"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else clip(str(value))
