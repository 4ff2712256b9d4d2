"""`manage.py keys`: which keys there are, whose, for what, and when they were last used."""

from __future__ import annotations

from typing import Any

from memory.management.base import ArgusCommand
from memory.models import AccessKey
from memory.text.seen import one_line


class Command(ArgusCommand):
    help = "List access keys."

    def handle(self, *args: Any, **options: Any) -> None:
        columns = (
            "prefix",
            "parent__prefix",
            "principal__name",
            "name",
            "scopes",
            "created_at",
            "last_used_at",
            "revoked_at",
        )
        rows = list(AccessKey.objects.order_by("created_at").values(*columns))
        lines = [
            f"{row['prefix']}  {one_line(row['principal__name']):<12} {','.join(row['scopes']):<28}"
            f" {'revoked' if row['revoked_at'] else 'in force':<9}"
            f" last used {row['last_used_at'] or 'never'}  {one_line(row['name'])}"
            + (f"  (made by {row['parent__prefix']})" if row["parent__prefix"] else "")
            for row in rows
        ]
        self.say({"keys": rows}, as_json=options["json"], line="\n".join(lines) or "no keys yet")
