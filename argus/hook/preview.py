"""What an installation would change, for a person who wants to see it first.

Writes nothing. Knows nothing about what is decided.
"""

from __future__ import annotations

from argus.hook import bundle, codex, edits, home, pi, wiring
from argus.hook.edits import Edit


def show(plan: list[Edit], secrets: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The diffs of the files, and what happens in a line each. `secrets` are left out."""
    diffs = [edits.diff(edit, secrets) for edit in plan if edit.changed]
    told: list[str] = []
    for edit in plan:
        lines = (edit.after or b"").count(b"\n")
        state = "would change" if edit.before is not None else f"new file, {lines} lines"
        told.append(f"{edit.path}: {state if edit.changed else 'unchanged'}")
        if edit.name != pi.NAME:
            told += _hooks(edit)
    if not bundle.current(home.place("lib")):
        told.append(f"{home.place('lib')}: would be unpacked")
    if any(edit.name == codex.NAME for edit in plan):
        told.append(f"{codex.config()}: Codex would be asked to trust the hooks")
    return diffs, told


def _hooks(edit: Edit) -> list[str]:
    """A line for each hook of ours that would stand in the file."""
    told = []
    for place, handler in wiring.places(wiring.decode(edit.path, edit.after), edit.name).items():
        words = wiring.split(handler)
        runs = f"runs argus-hook {words[-3]}" if words else f"is posted to {handler.get('url')}"
        told.append(f"    {place[0]:<17} {runs}")
    return told
