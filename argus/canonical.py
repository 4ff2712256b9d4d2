"""The canonical form of the tables: every row as one text that says the same in every database.

Numbers that a database gave out by itself are left out, and whatever a row points to is named by
what it is: an episode by its unit, a raw item by its identity. So two databases that hold the same
have the same digests, whichever rows came first. Reads only. Knows nothing about why anybody asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.apps import apps
from django.db import connection, models

#: The apps whose tables are told: ours, and who may come in.
APPS = ("auth", "memory", "review", "recall", "exporter")

#: Table -> what names a row of it for who points to it, as SQL over `{it}`. `<column>` is a foreign
#: key, named in turn. Tables that are not here are named by their primary key.
NAMES = {
    "auth_user": "{it}.username",
    "auth_group": "{it}.name",
    "memory_group": "{it}.name",
    "memory_principal": "{it}.name",
    "memory_accesskey": "{it}.digest",
    "memory_project": "{it}.name",
    "memory_session": "concat_ws('|', <owner_id>, {it}.source, {it}.key)",
    "memory_rawitem": "concat_ws('|', <owner_id>, {it}.dedup_key)",
    "memory_episode": "{it}.unit_key",
    "memory_stagerun": "concat_ws('|', {it}.stage, {it}.started_at)",
    "memory_gaterejection": "concat_ws('|', <episode_id>, <raw_item_id>, {it}.reason,"
    " md5({it}.candidate::text), {it}.created_at)",
    "memory_dedupverdict": "concat_ws('|', {it}.note_id, {it}.target_id, {it}.verdict,"
    " {it}.created_at)",
    "memory_injection": "concat_ws('|', <owner_id>, {it}.mode, {it}.created_at)",
    "memory_taskitem": "concat_ws('|', <raw_item_id>, {it}.start)",
    "memory_purgeledger": "concat_ws('|', {it}.actor, {it}.created_at)",
    "memory_searchtext": "concat_ws('|', {it}.note_id, <raw_item_id>)",
}

#: Columns that point to a row without a foreign key.
POINTS = {("memory_posting", "text_id"): "memory_searchtext"}


@dataclass(frozen=True)
class Digest:
    """A table in short: how many rows, and a hash of all of them."""

    rows: int
    md5: str


def told() -> list[type[models.Model]]:
    """The models of all tables that are told, in the order of their tables' names."""
    found = [model for app in APPS for model in apps.get_app_config(app).get_models(True)]
    return sorted(found, key=lambda model: model._meta.db_table)


def digests(
    of: Iterable[type[models.Model]] | None = None, *, schemas: Mapping[str, str] | None = None
) -> dict[str, Digest]:
    """Table -> its digest, in the database that Django's default connection is to.

    `schemas`: where a table lies that is not in `public`. Hold a snapshot (REPEATABLE READ) around
    it where others write.
    """
    made = {}
    with connection.cursor() as cursor:
        for model in told() if of is None else of:
            rows = select(model, schemas=schemas)
            cursor.execute(
                "SELECT count(*), md5(coalesce(string_agg(md5(row), '' ORDER BY md5(row)), ''))"
                f" FROM ({rows}) told (row)"
            )
            made[model._meta.db_table] = Digest(*cursor.fetchone())
    return made


def rows(model: type[models.Model], *, schemas: Mapping[str, str] | None = None) -> list[str]:
    """Every row of the table in its canonical form, in order. For tables that fit in memory."""
    with connection.cursor() as cursor:
        told = select(model, schemas=schemas)
        cursor.execute(f'SELECT row FROM ({told}) told (row) ORDER BY row COLLATE "C"')
        return [row for (row,) in cursor.fetchall()]


def select(
    model: type[models.Model],
    *,
    schemas: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> str:
    """The query that gives the rows in their canonical form, one text each; `without` are columns
    that are left out. Timestamps as the connection has them, which in Django is UTC."""
    table = model._meta.db_table
    columns = [_column(model, field, schemas or {}) for field in kept(model, without)]
    return f"SELECT ROW({', '.join(columns)})::text FROM {_place(table, schemas or {})} it"


# Ignored: fields of any type of value, which their class has no name for.
def kept(model: type[models.Model], without: Collection[str] = ()) -> list[models.Field]:  # type: ignore[type-arg]
    """The columns that say something: all but a number that the database gave out."""
    return [
        field
        for field in model._meta.concrete_fields
        if not isinstance(field, models.AutoField | models.BigAutoField)
        and str(field.column) not in without
    ]


def _column(model: type[models.Model], field: object, schemas: Mapping[str, str]) -> str:
    assert isinstance(field, models.Field)
    table, column = model._meta.db_table, str(field.column)
    other = POINTS.get((table, column))
    if isinstance(field, models.ForeignKey):
        other = field.remote_field.model._meta.db_table
    return _named(other, f"it.{column}", schemas) if other in NAMES else f"it.{column}"


def _named(table: str | None, value: str, schemas: Mapping[str, str], depth: int = 1) -> str:
    """What names the row of this table whose primary key is `value`, as SQL."""
    assert table is not None
    it = f"it{depth}"
    name = NAMES[table].format(it=it)
    fields = _by_table(table)._meta.concrete_fields
    for field in fields:
        if (mark := f"<{field.column}>") in name:
            assert isinstance(field, models.ForeignKey)
            other = field.remote_field.model._meta.db_table
            name = name.replace(mark, _named(other, f"{it}.{field.column}", schemas, depth + 1))
    return f"(SELECT {name} FROM {_place(table, schemas)} {it} WHERE {it}.id = {value})"


def _by_table(table: str) -> type[models.Model]:
    return next(one for one in apps.get_models(True) if one._meta.db_table == table)


def _place(table: str, schemas: Mapping[str, str]) -> str:
    return f"{schemas.get(table, 'public')}.{table}"
