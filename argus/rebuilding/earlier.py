"""What an earlier rebuild did not make again: brought over as it stood, until somebody restored it.

Reads: the schema `was` (`unmade` and `kept` in it, by `argus.rebuilding.record`). Writes: a
throwaway database. Verify: what people did with such a note from its restore on is done again, and
nothing of what was before. Knows nothing about the order of things.
"""

from __future__ import annotations

from argus.rebuilding.chronicle import FOLLOWED
from argus.rebuilding.record import ask
from memory import verdicts
from memory.models import Note
from memory.retire import retire, set_confidence
from memory.verifying.judged import UNMADE

# What was judged of a note before it was restored, with the status that it had then.
UNDECIDED = """
UPDATE memory_dedupverdict v SET status = first.status_before
FROM (SELECT DISTINCT ON (k.id) k.id, d.status_before FROM was.kept k
    JOIN was.memory_decision d ON d.verdict_id = k.id AND d.created_at > k.until
    WHERE NOT k.whole AND d.action = ANY(%(verbs)s) ORDER BY k.id, d.created_at, d.id) first
WHERE v.id = first.id
"""

# The confidence that a restored note had: as the next verdict found it, ...
FOUND = """
SELECT DISTINCT ON (u.note) u.note, v.confidence_before
FROM was.unmade u JOIN was.memory_dedupverdict v
    ON u.note = CASE v.verdict WHEN 'duplicate' THEN v.target_id ELSE v.note_id END
WHERE v.created_at > u.until AND v.confidence_before IS NOT NULL ORDER BY u.note, v.created_at, v.id
"""

# ... less the steps of what was judged before, and decided between its restore and that verdict.
STEPPED = """
SELECT u.note, v.confidence_before, v.confidence_after FROM was.kept k
JOIN was.memory_dedupverdict v ON v.id = k.id JOIN was.unmade u
    ON u.note = CASE v.verdict WHEN 'duplicate' THEN v.target_id ELSE v.note_id END
JOIN LATERAL (SELECT d.status_after FROM was.memory_decision d WHERE d.verdict_id = k.id
    AND d.created_at > k.until AND d.created_at < coalesce((SELECT min(next.created_at)
        FROM was.memory_dedupverdict next WHERE next.created_at > u.until
        AND next.confidence_before IS NOT NULL AND u.note = CASE next.verdict
            WHEN 'duplicate' THEN next.target_id ELSE next.note_id END), 'infinity')
    ORDER BY d.created_at DESC, d.id DESC LIMIT 1) last ON true
JOIN memory_dedupverdict before ON before.id = k.id
WHERE NOT k.whole AND v.confidence_before IS NOT NULL AND v.confidence_after IS NOT NULL
    AND last.status_after IN ('applied', 'approved')
    AND before.status NOT IN ('applied', 'approved')
ORDER BY v.id
"""


def keep_unmade() -> None:
    """What an earlier rebuild did not make again is not made again by this one: it stays as it is,
    with all that is said of it. What somebody restored since lies there as it did until then; what
    they did with it, from the restore on, is done again."""
    ask(
        "INSERT INTO memory_note SELECT n.* FROM was.memory_note n"
        " JOIN was.unmade u ON u.note = n.id"
    )
    for note, until in ask("SELECT note, until FROM was.unmade WHERE until IS NOT NULL"):
        Note.objects.as_pipeline().filter(pk=note).update(deleted_at=None)
        retire([note], reason=UNMADE, now=until)
    ask(
        "INSERT INTO memory_evidence SELECT e.* FROM was.memory_evidence e"
        " JOIN was.unmade u ON u.note = e.note_id WHERE u.until IS NULL OR e.created_at <= u.until"
    )
    ask(
        "INSERT INTO memory_dedupverdict SELECT v.* FROM was.memory_dedupverdict v"
        " JOIN was.kept k ON k.id = v.id"
    )
    ask(UNDECIDED, verbs=list(FOLLOWED["verdict"]))
    for note, confidence in ask(FOUND):
        set_confidence(note, confidence)
    for note, before, after in ask(STEPPED):
        found = Note.objects.as_pipeline().values_list("confidence", flat=True).get(pk=note)
        set_confidence(note, verdicts.carried(found, before=after, after=before))


def is_kept(kind: str, subject: str, act: int) -> bool:
    """Whether an act is about a note of `keep_unmade` and older than its restore: what it did lies
    in what was brought over."""
    notes = {
        "note": "SELECT %(id)s::uuid",
        "verdict": "SELECT unnest(ARRAY[note_id, target_id]) FROM was.memory_dedupverdict"
        " WHERE id = %(id)s::bigint",
    }
    if kind not in notes:
        return False
    return bool(
        ask(
            f"SELECT 1 FROM was.unmade WHERE note IN ({notes[kind]})"
            " AND (act IS NULL OR act > %(act)s)",
            id=subject,
            act=act,
        )
    )


def is_kept_verdict(verdict: int) -> bool:
    """Whether it came with a note of `keep_unmade`."""
    return bool(ask("SELECT 1 FROM was.kept WHERE id = %(id)s", id=verdict))
