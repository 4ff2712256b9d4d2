"""What clients need: keys made by keys, what a post says of its client, recalls told of later."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.fields.json import KeyTextTransform


class Migration(migrations.Migration):
    dependencies = [("memory", "0004_search_guards")]

    operations = [
        migrations.AddField(
            model_name="accesskey",
            name="parent",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="children",
                to="memory.accesskey",
            ),
        ),
        migrations.AddField(
            model_name="capturereceipt",
            name="client",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="capturereceipt",
            name="misses",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddConstraint(
            model_name="injection",
            constraint=models.UniqueConstraint(
                models.F("owner"),
                KeyTextTransform("id", "options"),
                condition=models.Q(outcome="skipped"),
                name="injection_skipped_once",
            ),
        ),
    ]
