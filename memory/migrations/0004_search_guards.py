"""What the database does for the search index by itself, and the guards of what is new."""

from __future__ import annotations

from django.db import migrations

# A purged note or raw item takes its search text along, and that its postings and its part in the
# statistics: no way of deleting leaves a term behind or a count too high.
CASCADES = """
ALTER TABLE memory_searchtext
    ADD CONSTRAINT search_text_note FOREIGN KEY (note_id)
        REFERENCES memory_note (id) ON DELETE CASCADE,
    ADD CONSTRAINT search_text_raw_item FOREIGN KEY (raw_item_id)
        REFERENCES memory_rawitem (id) ON DELETE CASCADE;
ALTER TABLE memory_feedback
    ADD CONSTRAINT feedback_note FOREIGN KEY (note_id)
        REFERENCES memory_note (id) ON DELETE CASCADE;

CREATE FUNCTION argus_unindex() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    -- Collections before terms, as whoever indexes takes them.
    PERFORM FROM public.memory_collection
        WHERE owner_id = OLD.owner_id AND raw = OLD.raw FOR UPDATE;
    UPDATE public.memory_term t SET texts = t.texts - 1
        FROM public.memory_posting p
        WHERE p.text_id = OLD.id AND p.live
          AND t.owner_id = OLD.owner_id AND t.raw = OLD.raw AND t.term = p.term;
    IF EXISTS (
        SELECT 1 FROM public.memory_posting p WHERE p.text_id = OLD.id AND p.live
    ) THEN
        UPDATE public.memory_collection SET texts = texts - 1, length = length - OLD.length
            WHERE owner_id = OLD.owner_id AND raw = OLD.raw;
    END IF;
    DELETE FROM public.memory_posting WHERE text_id = OLD.id;
    RETURN OLD;
END $$;

CREATE TRIGGER argus_unindex BEFORE DELETE ON memory_searchtext
    FOR EACH ROW EXECUTE FUNCTION argus_unindex();
"""

FEEDBACK = """
CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON memory_feedback
    FOR EACH ROW EXECUTE FUNCTION argus_frozen();
CREATE TRIGGER argus_no_truncate BEFORE TRUNCATE ON memory_feedback
    FOR EACH STATEMENT EXECUTE FUNCTION argus_no_truncate();
"""

UNDO = """
DROP FUNCTION argus_unindex() CASCADE;
ALTER TABLE memory_searchtext
    DROP CONSTRAINT search_text_note, DROP CONSTRAINT search_text_raw_item;
ALTER TABLE memory_feedback DROP CONSTRAINT feedback_note;
DROP TRIGGER argus_frozen ON memory_feedback;
DROP TRIGGER argus_no_truncate ON memory_feedback;
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0003_search")]

    operations = [migrations.RunSQL(CASCADES + FEEDBACK, reverse_sql=UNDO)]
