"""What the queue runs. Tasks carry no arguments but ids: payloads are signed pickles."""

from __future__ import annotations

from memory.pipeline import process


def run_process() -> dict[str, object]:
    """One pass of the pipeline; many may run at once, units are claimed."""
    return process(trigger="schedule").as_json()
