import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0005_clients"),
    ]

    operations = [
        migrations.CreateModel(
            name="Act",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("verb", models.TextField()),
                ("kind", models.TextField()),
                ("reference", models.TextField(blank=True, default="")),
                ("reason", models.TextField(blank=True, default="")),
                ("detail", models.JSONField(blank=True, default=dict)),
                ("door", models.TextField(default="page")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "key",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="memory.accesskey",
                    ),
                ),
                (
                    "principal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="acts",
                        to="memory.principal",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["principal", "-id"], name="act_of"),
                    models.Index(fields=["kind", "reference", "-id"], name="act_on"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("door__in", ("page", "command", "api"))),
                        name="act_door",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pin",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "note",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="pins",
                        to="memory.note",
                    ),
                ),
                (
                    "principal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pins",
                        to="memory.principal",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("principal", "note"), name="pin_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Proposal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("unit", models.TextField()),
                ("notes", models.JSONField(blank=True, default=list)),
                ("refused", models.JSONField(blank=True, default=list)),
                ("model_asked", models.TextField(blank=True, default="")),
                ("model_real", models.TextField(blank=True, default="")),
                ("prompt_version", models.TextField(blank=True, default="")),
                ("status", models.TextField(default="open")),
                ("decided_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="memory.principal",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
                (
                    "principal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="memory.principal",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.stagerun"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ("open", "applied", "dropped"))),
                        name="proposal_status",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "open")),
                        fields=("unit",),
                        name="proposal_open_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RejectedFact",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("content_key", models.TextField()),
                (
                    "shingles",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), blank=True, default=list, size=None
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("lifted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
                (
                    "principal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="memory.principal",
                    ),
                ),
                (
                    "rejection",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="memory.gaterejection",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("lifted_at", None)),
                        fields=("owner", "content_key"),
                        name="rejected_fact_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RejectionDecision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("action", models.TextField()),
                ("reason", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "note",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="accepted",
                        to="memory.note",
                    ),
                ),
                (
                    "principal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
                (
                    "rejection",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="decisions",
                        to="memory.gaterejection",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["rejection", "-id"], name="rejection_decided")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("action__in", ("accept", "confirm", "forbid", "undo"))),
                        name="rejection_decision_action",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("visibility", models.TextField(default="private")),
                ("confidentiality", models.TextField(default="internal")),
                ("opening", models.TextField()),
                ("title", models.TextField()),
                ("source", models.TextField(blank=True, default="")),
                ("session", models.TextField(blank=True, default="")),
                ("start", models.IntegerField()),
                ("end", models.IntegerField()),
                ("quote", models.TextField()),
                ("sha256", models.TextField()),
                ("words", models.JSONField(blank=True, default=list)),
                ("opened_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.project"
                    ),
                ),
                (
                    "raw_item",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="tasks",
                        to="memory.rawitem",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.stagerun"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-opened_at", "-id"], name="task_item_latest"),
                    models.Index(fields=["owner", "source", "session"], name="task_item_session"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("opening__in", ("promise", "request", "posted"))),
                        name="task_opening",
                    ),
                    models.UniqueConstraint(fields=("raw_item", "start"), name="task_item_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("happening", models.TextField()),
                ("said_by", models.TextField(blank=True, default="")),
                ("start", models.IntegerField(null=True)),
                ("end", models.IntegerField(null=True)),
                ("quote", models.TextField(blank=True, default="")),
                ("sha256", models.TextField(blank=True, default="")),
                ("detail", models.JSONField(blank=True, default=dict)),
                ("occurred_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "principal",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="memory.principal",
                    ),
                ),
                (
                    "raw_item",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="memory.rawitem",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.stagerun"
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="events",
                        to="memory.taskitem",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "happening__in",
                                (
                                    "claim_done",
                                    "claim_failed",
                                    "confirmed",
                                    "denied",
                                    "test_passed",
                                    "test_failed",
                                    "commit",
                                ),
                            )
                        ),
                        name="task_happening",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("end__isnull", False),
                                ("raw_item__isnull", False),
                                ("start__isnull", False),
                            ),
                            ("principal__isnull", False),
                            _connector="OR",
                        ),
                        name="task_event_points",
                    ),
                    models.UniqueConstraint(
                        fields=("item", "raw_item", "start", "happening"), name="task_event_once"
                    ),
                ],
            },
        ),
        migrations.AlterModelOptions(
            name="principal",
            options={
                "permissions": [
                    ("look", "May look at every page"),
                    ("decide", "May decide what waits for a person"),
                    ("operate", "May run stages, set parked units free and see to keys"),
                    ("see_all", "May ask for the rows of all owners"),
                ]
            },
        ),
        migrations.AddField(
            model_name="claim",
            name="dismissed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="merged_into",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="merged",
                to="memory.project",
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="tracked_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="session",
            name="tracked_item",
            field=models.BigIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name="stagerun",
            name="cancel_asked_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="stagerun",
            name="progress",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddIndex(
            model_name="capturereceipt",
            index=models.Index(fields=["-created_at"], name="receipt_recent"),
        ),
        migrations.AddIndex(
            model_name="episode",
            index=models.Index(fields=["-started_at", "-id"], name="episode_latest"),
        ),
        migrations.AddIndex(
            model_name="gaterejection",
            index=models.Index(fields=["owner", "-id"], name="rejection_latest"),
        ),
        migrations.AddIndex(
            model_name="gaterejection",
            index=models.Index(fields=["-created_at"], name="rejection_recent"),
        ),
        migrations.AddIndex(
            model_name="injection",
            index=models.Index(fields=["owner", "-id"], name="injection_latest"),
        ),
        migrations.AddIndex(
            model_name="injection",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["note_ids"], name="injection_notes"
            ),
        ),
        migrations.AddIndex(
            model_name="note",
            index=models.Index(fields=["-created_at", "-id"], name="note_latest"),
        ),
        migrations.AddIndex(
            model_name="rawitem",
            index=models.Index(
                condition=models.Q(("source", "task")), fields=["id"], name="raw_item_tasks"
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(
                    ("tracked_at", None),
                    ("last_captured_at__gt", models.F("tracked_at")),
                    _connector="OR",
                ),
                fields=["last_captured_at"],
                name="session_untracked",
            ),
        ),
    ]
