"""What `verify` looks at of the feed: no note was shown to anybody after it was retired.

Reads: draw, note. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory.findings import Found
from memory.verifying.check import Check, Look, count, rows, slack

FED = """
SELECT 'note', d.note_id::text, d.principal_id,
    jsonb_build_object('draw', d.id, 'retired', n.deleted_at)
FROM review_draw d JOIN memory_note n ON n.id = d.note_id
WHERE n.deleted_at < d.created_at - %(slack)s
"""


def fed(look: Look) -> Iterator[Found]:
    """Notes that the feed showed after they were retired."""
    count(look, "SELECT count(*) FROM review_draw")
    yield from rows(look, FED, slack=slack())


CHECKS = (Check("fed", "no retired note came up in the feed", fed),)
