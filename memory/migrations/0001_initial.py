import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.utils.timezone
import pgvector.django.extensions
import pgvector.django.halfvec
import pgvector.django.indexes
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "__first__"),
    ]

    operations = [
        pgvector.django.extensions.VectorExtension(),
        migrations.CreateModel(
            name="Cooldown",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("provider", models.TextField(unique=True)),
                ("until", models.DateTimeField()),
                ("reason", models.TextField(blank=True, default="")),
            ],
        ),
        migrations.CreateModel(
            name="Group",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.TextField(unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="Project",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.TextField(unique=True)),
                ("origin", models.TextField(default="explicit")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="PurgeLedger",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("actor", models.TextField()),
                ("reason", models.TextField()),
                ("counts", models.JSONField(default=dict)),
                ("hashes", models.JSONField(default=list)),
                ("files_pending", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="TokenDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(unique=True)),
                ("tokens", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Claim",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stage", models.TextField()),
                ("unit", models.TextField()),
                ("worker", models.TextField(blank=True, default="")),
                ("lease_until", models.DateTimeField(null=True)),
                ("attempts", models.IntegerField(default=0)),
                ("content_failures", models.IntegerField(default=0)),
                ("parked_at", models.DateTimeField(null=True)),
                ("parked_reason", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("parked_at__isnull", False)),
                        fields=["stage"],
                        name="claim_parked",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("stage", "unit"), name="claim_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelReply",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("port", models.TextField()),
                ("model", models.TextField()),
                ("prompt_version", models.TextField()),
                ("input_sha256", models.TextField()),
                ("model_real", models.TextField(blank=True, default="")),
                ("reply", models.BinaryField()),
                ("units", models.JSONField(blank=True, default=list)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("port", "model", "prompt_version", "input_sha256"),
                        name="model_reply_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Principal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.TextField(unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "groups",
                    models.ManyToManyField(blank=True, related_name="members", to="memory.group"),
                ),
                (
                    "user",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AccessKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.TextField(blank=True, default="")),
                ("prefix", models.TextField()),
                ("digest", models.TextField(unique=True)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), size=None
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "principal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="keys",
                        to="memory.principal",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="CaptureReceipt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source", models.TextField(blank=True, default="")),
                ("seen", models.IntegerField()),
                ("stored", models.IntegerField()),
                ("duplicates", models.IntegerField()),
                ("refused", models.JSONField(blank=True, default=dict)),
                ("refusals", models.JSONField(blank=True, default=list)),
                ("redacted", models.JSONField(blank=True, default=dict)),
                ("client_range", models.JSONField(blank=True, default=dict)),
                ("session_end", models.JSONField(blank=True, default=dict)),
                ("milliseconds", models.IntegerField(default=0)),
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
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PathRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("prefix", models.TextField(unique=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="paths",
                        to="memory.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ProjectAlias",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.TextField(unique=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="aliases",
                        to="memory.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RawItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("visibility", models.TextField(default="private")),
                ("confidentiality", models.TextField(default="internal")),
                ("source", models.TextField()),
                ("kind", models.TextField(default="turn")),
                ("role", models.TextField(blank=True, default="")),
                ("body", models.TextField()),
                ("session", models.TextField(blank=True, default="")),
                ("cwd", models.TextField(blank=True, default="")),
                ("project_method", models.TextField(blank=True, default="")),
                ("record_id", models.TextField(blank=True, default="")),
                ("occurred_at", models.DateTimeField()),
                ("captured_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("locator", models.JSONField(blank=True, default=dict)),
                ("flags", models.JSONField(blank=True, default=dict)),
                ("sha256", models.TextField()),
                ("dedup_key", models.TextField()),
                ("copy_key", models.TextField(blank=True, default="")),
                ("near_key", models.TextField(blank=True, default="")),
                (
                    "near_duplicate_of",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="memory.rawitem",
                    ),
                ),
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
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("kind", "turn")),
                        fields=["owner", "source", "session", "occurred_at", "id"],
                        name="raw_item_turns",
                    ),
                    models.Index(
                        condition=models.Q(("near_key", ""), _negated=True),
                        fields=["owner", "near_key"],
                        name="raw_item_near",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "turn"), _negated=True),
                        fields=["id"],
                        name="raw_item_units",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("record_id", ""), _negated=True),
                        fields=("owner", "source", "record_id"),
                        name="raw_item_record",
                    ),
                    models.UniqueConstraint(fields=("owner", "dedup_key"), name="raw_item_dedup"),
                    models.UniqueConstraint(
                        condition=models.Q(("copy_key", ""), _negated=True),
                        fields=("owner", "copy_key"),
                        name="raw_item_copy",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ("turn", "document", "image", "event", "synthesis"))
                        ),
                        name="raw_item_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("visibility__in", ("private", "team", "common"))),
                        name="raw_item_sees",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confidentiality__in", ("public", "internal", "restricted", "secret"))
                        ),
                        name="raw_item_goes",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source", models.TextField()),
                ("key", models.TextField(blank=True)),
                ("last_turn_at", models.DateTimeField(null=True)),
                ("last_captured_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("ended_reason", models.TextField(blank=True, default="")),
                ("pending", models.BooleanField(default=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("pending", True)),
                        fields=["last_captured_at"],
                        name="session_todo",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "source", "key"), name="session_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="StageRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stage", models.TextField()),
                ("status", models.TextField(default="running")),
                ("trigger_source", models.TextField(default="command")),
                ("worker", models.TextField(default="")),
                ("report", models.JSONField(blank=True, default=dict)),
                ("error", models.TextField(blank=True, default="")),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("heartbeat_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["stage", "-started_at"], name="stage_run_last"),
                    models.Index(
                        condition=models.Q(("status", "running")),
                        fields=["stage"],
                        name="stage_run_running",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Episode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("visibility", models.TextField(default="private")),
                ("confidentiality", models.TextField(default="internal")),
                ("source", models.TextField()),
                ("session", models.TextField(blank=True, default="")),
                ("unit_key", models.TextField(unique=True)),
                ("turn_count", models.IntegerField()),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                ("boundary_reason", models.TextField()),
                ("boundary_score", models.FloatField(null=True)),
                ("late", models.BooleanField(default=False)),
                ("project_method", models.TextField(blank=True, default="")),
                ("project_confidence", models.FloatField(default=0.0)),
                ("cwd", models.TextField(blank=True, default="")),
                ("distilled_at", models.DateTimeField(blank=True, null=True)),
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
                    "first_item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="memory.rawitem",
                    ),
                ),
                (
                    "last_item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
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
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("distilled_at", None)),
                        fields=["started_at", "id"],
                        name="episode_todo",
                    ),
                    models.Index(
                        fields=["owner", "source", "session", "ended_at"], name="episode_session"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("visibility", models.TextField(default="private")),
                ("confidentiality", models.TextField(default="internal")),
                ("level", models.TextField(default="note")),
                ("memory_kind", models.TextField(default="semantic")),
                ("title", models.TextField()),
                ("content", models.TextField()),
                ("context", models.TextField(blank=True, default="")),
                (
                    "keywords",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, default=list, size=None
                    ),
                ),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, default=list, size=None
                    ),
                ),
                ("importance", models.FloatField(default=0.5)),
                ("confidence", models.FloatField(default=0.5)),
                ("said_by", models.TextField(blank=True, default="")),
                ("locator", models.JSONField(blank=True, default=dict)),
                ("session", models.TextField(blank=True, default="")),
                ("unit_key", models.TextField()),
                ("content_key", models.TextField()),
                ("search", django.contrib.postgres.search.SearchVectorField()),
                ("embedding", pgvector.django.halfvec.HalfVectorField(dimensions=768, null=True)),
                ("embedding_model", models.TextField(blank=True, default="")),
                ("embedded_at", models.DateTimeField(null=True)),
                ("question", models.TextField(blank=True, default="")),
                ("answer", models.TextField(blank=True, default="")),
                ("model_asked", models.TextField(blank=True, default="")),
                ("model_real", models.TextField(blank=True, default="")),
                ("prompt_version", models.TextField(blank=True, default="")),
                ("valid_from", models.DateTimeField()),
                ("valid_to", models.DateTimeField(null=True)),
                ("invalidated_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("retired_reason", models.TextField(blank=True, default="")),
                (
                    "episode",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="notes",
                        to="memory.episode",
                    ),
                ),
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
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="notes",
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
                    pgvector.django.indexes.HnswIndex(
                        condition=models.Q(("deleted_at", None)),
                        ef_construction=64,
                        fields=["embedding"],
                        m=16,
                        name="note_nearest",
                        opclasses=["halfvec_cosine_ops"],
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        condition=models.Q(("deleted_at", None)),
                        fields=["search"],
                        name="note_search",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at", None)),
                        fields=["owner", "project", "-importance", "-valid_from"],
                        name="note_context",
                    ),
                    models.Index(
                        condition=models.Q(("deleted_at", None)),
                        fields=["owner", "content_key"],
                        name="note_content",
                    ),
                    models.Index(fields=["unit_key"], name="note_unit"),
                    models.Index(
                        condition=models.Q(("deleted_at", None), ("embedding", None)),
                        fields=["created_at"],
                        name="note_unembedded",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("level__in", ("note", "L0", "L1", "L2"))),
                        name="note_level",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("memory_kind__in", ("semantic", "episodic", "procedural"))
                        ),
                        name="note_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("visibility__in", ("private", "team", "common"))),
                        name="note_sees",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confidentiality__in", ("public", "internal", "restricted", "secret"))
                        ),
                        name="note_goes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confidence__gte", 0),
                            ("confidence__lte", 1),
                            ("importance__gte", 0),
                            ("importance__lte", 1),
                        ),
                        name="note_bounds",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DedupVerdict",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("verdict", models.TextField()),
                ("status", models.TextField(default="applied")),
                ("similarity", models.FloatField(null=True)),
                ("lexical", models.FloatField(null=True)),
                ("candidates", models.JSONField(blank=True, default=list)),
                ("reasoning", models.TextField(blank=True, default="")),
                ("confidence_before", models.FloatField(null=True)),
                ("confidence_after", models.FloatField(null=True)),
                ("corroborates", models.BooleanField(default=False)),
                ("model_asked", models.TextField(blank=True, default="")),
                ("model_real", models.TextField(blank=True, default="")),
                ("prompt_version", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "note",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="memory.note",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judged",
                        to="memory.note",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decided",
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
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.stagerun"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["created_at"],
                        name="verdict_pending",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("verdict__in", ("duplicate", "refine", "supersede", "distinct"))
                        ),
                        name="verdict_kind",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ("applied", "pending", "approved", "rejected", "undone"))
                        ),
                        name="verdict_status",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Decision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("action", models.TextField()),
                ("reason", models.TextField(blank=True, default="")),
                ("status_before", models.TextField()),
                ("status_after", models.TextField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "verdict",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="memory.dedupverdict",
                    ),
                ),
                (
                    "principal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Evidence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("quote", models.TextField()),
                ("start", models.IntegerField(null=True)),
                ("end", models.IntegerField(null=True)),
                ("sha256", models.TextField()),
                ("origin", models.TextField(default="distill")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "note",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="evidence",
                        to="memory.note",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="memory.note",
                    ),
                ),
                (
                    "raw_item",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="cited",
                        to="memory.rawitem",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("end__isnull", False),
                                ("raw_item__isnull", False),
                                ("start__isnull", False),
                            ),
                            ("parent__isnull", False),
                            _connector="OR",
                        ),
                        name="evidence_points",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EpisodeTurn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.IntegerField()),
                (
                    "episode",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="turns",
                        to="memory.episode",
                    ),
                ),
                (
                    "raw_item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="placed",
                        to="memory.rawitem",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="SegmentCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("check_kind", models.TextField()),
                ("score", models.FloatField(null=True)),
                ("threshold", models.FloatField(null=True)),
                ("fired", models.BooleanField()),
                ("outcome", models.TextField(default="checked")),
                ("model", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "raw_item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.rawitem"
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
                    models.UniqueConstraint(
                        fields=("raw_item", "check_kind", "outcome"), name="segment_check_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LlmCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stage", models.TextField()),
                ("port", models.TextField()),
                ("unit", models.TextField(blank=True, default="")),
                ("model_asked", models.TextField()),
                ("model_real", models.TextField(blank=True, default="")),
                ("prompt_version", models.TextField(blank=True, default="")),
                ("structured_mode", models.TextField(blank=True, default="")),
                ("tokens_in", models.IntegerField(default=0)),
                ("tokens_out", models.IntegerField(default=0)),
                ("milliseconds", models.IntegerField(default=0)),
                ("outcome", models.TextField()),
                ("redacted", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.stagerun"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["created_at", "stage"], name="llm_call_recent")],
            },
        ),
        migrations.CreateModel(
            name="GateRejection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.TextField()),
                ("detail", models.TextField(blank=True, default="")),
                ("candidate", models.JSONField()),
                ("model_asked", models.TextField(blank=True, default="")),
                ("model_real", models.TextField(blank=True, default="")),
                ("prompt_version", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "episode",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.episode"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
                (
                    "raw_item",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.rawitem"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.stagerun"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DistillFailure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stage", models.TextField(default="distill")),
                ("unit", models.TextField()),
                ("kind", models.TextField()),
                ("error", models.TextField()),
                ("reply", models.BinaryField(default=b"")),
                ("attempt", models.IntegerField(default=0)),
                ("parked", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
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
        ),
        migrations.CreateModel(
            name="DistilledItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("distilled_at", models.DateTimeField()),
                (
                    "raw_item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="distilled",
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
        ),
        migrations.CreateModel(
            name="Attribution",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("method", models.TextField()),
                ("confidence", models.FloatField()),
                ("cwd", models.TextField(blank=True, default="")),
                ("cwd_mismatch", models.BooleanField(default=False)),
                ("turns", models.JSONField(default=dict)),
                ("model", models.TextField(blank=True, default="")),
                ("score", models.FloatField(null=True)),
                ("threshold", models.FloatField(null=True)),
                ("runner_up", models.TextField(blank=True, default="")),
                ("runner_up_score", models.FloatField(null=True)),
                ("centroid_episodes", models.IntegerField(null=True)),
                ("centroid_age_seconds", models.FloatField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "episode",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attributions",
                        to="memory.episode",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.project"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.stagerun"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TurnVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.TextField()),
                ("embedding", pgvector.django.halfvec.HalfVectorField(dimensions=768)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "raw_item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="vectors",
                        to="memory.rawitem",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("raw_item", "model"), name="turn_vector_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Emission",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.TextField()),
                ("reference", models.TextField(blank=True, default="")),
                ("sha256", models.TextField()),
                (
                    "shingles",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="memory.principal"
                    ),
                ),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["shingles"], name="emission_shingles"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "kind", "sha256"), name="emission_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Injection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("mode", models.TextField()),
                ("query", models.TextField(blank=True, default="")),
                ("session", models.TextField(blank=True, default="")),
                ("cwd", models.TextField(blank=True, default="")),
                ("outcome", models.TextField()),
                ("gate", models.TextField(blank=True, default="")),
                (
                    "note_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), blank=True, default=list, size=None
                    ),
                ),
                ("hits", models.JSONField(blank=True, default=list)),
                ("floors", models.JSONField(blank=True, default=dict)),
                ("timings", models.JSONField(blank=True, default=dict)),
                (
                    "degraded",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, default=list, size=None
                    ),
                ),
                ("omitted", models.IntegerField(default=0)),
                ("characters", models.IntegerField(default=0)),
                ("model_asked", models.TextField(blank=True, default="")),
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
            ],
            options={
                "indexes": [
                    models.Index(fields=["owner", "session"], name="injection_session"),
                    models.Index(fields=["-created_at"], name="injection_recent"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Centroid",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.TextField()),
                ("vector", pgvector.django.halfvec.HalfVectorField(dimensions=768)),
                ("episodes", models.IntegerField(default=0)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="memory.principal"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="centroids",
                        to="memory.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "project", "model"), name="centroid_once"
                    )
                ],
            },
        ),
    ]
