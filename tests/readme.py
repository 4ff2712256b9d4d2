"""The parts of the README that are printed from the code: `python -m tests.readme` writes them.

A test compares them, so that the README never says what the code no longer does.
"""

from __future__ import annotations

import ast
import os
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
ROOMS = ("argus", "memory", "review", "recall", "exporter")

#: Folders of the tree that are told in one line.
FOLDED = ("migrations",)


@dataclass(frozen=True)
class Constant:
    """A module constant with the comments above it."""

    module: str
    name: str
    value: str
    what: str
    why: str
    calibrate: str


def modules() -> list[Path]:
    """Every product module, in the order of the tree."""
    return sorted(
        path
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if not set(path.parts) & set(FOLDED)
    )


def constants() -> Iterator[Constant]:
    """Module constants with a `#:` comment, a `# Why:` and a plain value."""
    for path in modules():
        comments = _comments(path)
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.Assign):
                continue
            target = node.targets[0]
            if not isinstance(target, ast.Name) or not target.id.isupper():
                continue
            told = _told(comments, node.lineno)
            if "what" not in told or "why" not in told or not _plain(node.value):
                continue
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            value = ast.unparse(node.value)
            yield Constant(
                module, target.id, value, told["what"], told["why"], told.get("calibrate", "")
            )


def _plain(node: ast.expr) -> bool:
    return all(
        isinstance(one, (ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop))
        for one in ast.walk(node)
    )


def _comments(path: Path) -> dict[int, str]:
    with tokenize.open(path) as handle:
        tokens = tokenize.generate_tokens(handle.readline)
        return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}


def _told(comments: dict[int, str], line: int) -> dict[str, str]:
    """The comment block above a line, by its parts: what, why, calibrate."""
    block: list[str] = []
    while (line := line - 1) in comments:
        block.insert(0, comments[line])
    told: dict[str, str] = {}
    part = ""
    for comment in block:
        match = re.match(r"#(:| Why:| Calibrate:) ?(.*)", comment)
        if match:
            part = {":": "what", " Why:": "why", " Calibrate:": "calibrate"}[match.group(1)]
            told[part] = f"{told[part]} {match.group(2)}" if part in told else match.group(2)
        elif part:
            told[part] += " " + comment.lstrip("# ")
    return told


def constants_table() -> str:
    rows = [
        f"| `{c.name}`<br>{c.module} | {c.value} | {_cell(c.what)} "
        f"| {_cell(c.why)} | {_cell(c.calibrate)} |"
        for c in constants()
    ]
    head = ["| constant | value | what | why | calibrate |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").strip()


def tree() -> str:
    """One line per module: its path and the first line of its docstring."""
    lines: list[str] = []
    for path in modules():
        if not (doc := ast.get_docstring(ast.parse(path.read_text()))):
            continue
        name = str(path.relative_to(ROOT))
        lines.append(f"    {name:<44} {doc.splitlines()[0]}")
    return "\n".join(lines)


def settings_table() -> str:
    from argus.environment import table

    return table()


def hook_line() -> str:
    """The line that fetches the client, as a server with this code gives it."""
    import django

    django.setup()
    from argus.hookdoors import install_line

    return "\n".join(f"    {line}" for line in install_line().splitlines())


SECTIONS = {
    "settings": settings_table,
    "hook": hook_line,
    "constants": constants_table,
    "tree": tree,
}


def filled(text: str) -> str:
    """The README with its printed parts as the code has them now."""
    for name, made in SECTIONS.items():
        opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = text.partition(opening)
        _, found, after = rest.partition(closing)
        assert found, f"README.md has no place for {name}"
        text = f"{before}{opening}\n{made()}\n{closing}{after}"
    return text


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    README.write_text(filled(README.read_text()))
