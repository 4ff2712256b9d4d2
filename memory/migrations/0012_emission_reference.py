from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0011_purge")]

    operations = [
        migrations.AddIndex(
            model_name="emission",
            index=models.Index(fields=["owner", "kind", "reference"], name="emission_of"),
        ),
    ]
