"""A purge takes along what was said, and what went wrong, of the sessions that it touches.

Of the claims of these sessions it takes what stands in them: one that was tried or parked begins
anew. Only what a person dismissed stays so, without its reason, which may quote a turn.
"""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

NAMES = "    names := names || ARRAY(SELECT 'item:' || id FROM unnest(items) AS id);\n"

# The reason of an act about a session, an error of one and a model's reply may quote its turns.
SESSIONS = """    names := names || ARRAY(SELECT DISTINCT 'session:' || s.id FROM memory_rawitem r
        JOIN memory_session s
            ON s.owner_id = r.owner_id AND s.source = r.source AND s.key = r.session
        WHERE r.id = ANY(items));
"""

CLAIMS = "    DELETE FROM memory_claim WHERE unit = ANY(names);\n"
LEFT_ALONE = """    UPDATE memory_claim SET parked_reason = ''
        WHERE unit = ANY(names) AND unit LIKE 'session:%' AND dismissed_at IS NOT NULL;
    DELETE FROM memory_claim WHERE unit = ANY(names)
        AND NOT (unit LIKE 'session:%' AND dismissed_at IS NOT NULL);
"""


def before() -> str:
    function: str = import_module("memory.migrations.0007_page_guards").purge()
    return function


def purge() -> str:
    """The purge function as it was, and what is new."""
    function = before()
    for old, new in ((NAMES, NAMES + SESSIONS), (CLAIMS, LEFT_ALONE)):
        assert function.count(old) == 1
        function = function.replace(old, new)
    return function


class Migration(migrations.Migration):
    dependencies = [("memory", "0007_page_guards")]

    operations = [migrations.RunSQL(purge(), reverse_sql=before())]
