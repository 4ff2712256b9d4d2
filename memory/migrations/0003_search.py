import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import pgvector.django.indexes
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0002_guards"),
    ]

    operations = [
        migrations.CreateModel(
            name="Collection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("raw", models.BooleanField()),
                ("texts", models.BigIntegerField()),
                ("length", models.BigIntegerField()),
                (
                    "speakers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="memory.principal",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "raw"), name="collection_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Feedback",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("verdict", models.TextField()),
                ("reason", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "injection",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="memory.injection",
                    ),
                ),
                (
                    "note",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="feedback",
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
                    "project",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="memory.project"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["principal", "note", "-id"], name="feedback_newest")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("verdict__in", ("useful", "wrong", "outdated", "never", "withdrawn"))
                        ),
                        name="feedback_verdict",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Posting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "text_id",
                        "term",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("text_id", models.BigIntegerField()),
                ("term", models.BigIntegerField()),
                ("weight", models.FloatField()),
                ("raw", models.BooleanField()),
                ("live", models.BooleanField(default=True)),
                ("visibility", models.TextField()),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="memory.principal",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="memory.project",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["owner", "raw", "term", "-weight"],
                        include=("text_id", "live", "project"),
                        name="posting_own",
                    ),
                    models.Index(
                        condition=models.Q(("visibility", "common")),
                        fields=["raw", "term", "-weight"],
                        include=("text_id", "live", "project", "owner"),
                        name="posting_common",
                    ),
                    models.Index(
                        condition=models.Q(("visibility", "team")),
                        fields=["owner", "raw", "term", "-weight"],
                        include=("text_id", "live", "project"),
                        name="posting_team",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchText",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("raw", models.BooleanField()),
                ("visibility", models.TextField()),
                ("occurred_at", models.DateTimeField()),
                ("settled", models.BooleanField(default=True)),
                ("terms", models.BinaryField()),
                ("counts", models.BinaryField()),
                ("heads", models.BinaryField()),
                ("length", models.IntegerField()),
                ("traits", models.IntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "note",
                    models.OneToOneField(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="text",
                        to="memory.note",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="memory.principal",
                    ),
                ),
                (
                    "place",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="memory.session",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="memory.project",
                    ),
                ),
                (
                    "raw_item",
                    models.OneToOneField(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="text",
                        to="memory.rawitem",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("place__isnull", False)),
                        fields=["place", "occurred_at", "id"],
                        name="search_text_place",
                    ),
                    models.Index(fields=["owner", "raw", "occurred_at"], name="search_text_owner"),
                    models.Index(
                        condition=models.Q(("project__isnull", False)),
                        fields=["project", "owner"],
                        name="search_text_project",
                    ),
                    models.Index(
                        condition=models.Q(("visibility", "private"), _negated=True),
                        fields=["raw", "owner"],
                        name="search_text_shared",
                    ),
                    models.Index(
                        condition=models.Q(("settled", False)),
                        fields=["id"],
                        name="search_text_tail",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("note__isnull", True), ("raw", True), ("raw_item__isnull", False)
                            ),
                            models.Q(
                                ("note__isnull", False), ("raw", False), ("raw_item__isnull", True)
                            ),
                            _connector="OR",
                        ),
                        name="search_text_of_one",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Term",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("raw", models.BooleanField()),
                ("term", models.BigIntegerField()),
                ("texts", models.BigIntegerField()),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="memory.principal",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "raw", "term"), name="term_once")
                ],
            },
        ),
        migrations.RemoveIndex(
            model_name="note",
            name="note_search",
        ),
        migrations.RemoveField(
            model_name="note",
            name="search",
        ),
        migrations.AddField(
            model_name="injection",
            name="options",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="injection",
            name="turn_ids",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), blank=True, default=list, size=None
            ),
        ),
        migrations.AddIndex(
            model_name="note",
            index=models.Index(
                condition=models.Q(
                    ("deleted_at", None), models.Q(("visibility", "private"), _negated=True)
                ),
                fields=["owner"],
                name="note_shared",
            ),
        ),
        migrations.AddIndex(
            model_name="turnvector",
            index=pgvector.django.indexes.HnswIndex(
                ef_construction=64,
                fields=["embedding"],
                m=16,
                name="turn_nearest",
                opclasses=["halfvec_cosine_ops"],
            ),
        ),
    ]
