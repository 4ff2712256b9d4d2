"""Texts that want to be more than text, and every string field of every table filled with them.

The payloads are our own. Each that could run calls `hit()` or leaves something named MARK, by which
a browser's page tells. Fields are found by reflection: one that is added is filled without a word
here, and a table that the demo leaves empty gets rows. Knows nothing about pages.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

#: What stands in every payload and nowhere else.
MARK = "zqx"

#: An element with a handler, for whatever quote it is in.
BREAK = f"\"'`><img src=x onerror=hit('{MARK}')>"

TAGS = (
    f"<script>hit('{MARK}')</script>",
    f"<img src=x onerror=hit('{MARK}')>",
    f"<svg/onload=hit('{MARK}')>",
    f"<svg><animate onbegin=hit('{MARK}') attributeName=x dur=1s>",
    f"<math><mtext><table><mglyph><style><img src=x onerror=hit('{MARK}')>",
    f"<iframe srcdoc=\"<script>parent.hit('{MARK}')</script>\"></iframe>",
    f"<object data=\"javascript:hit('{MARK}')\"></object>",
    f"<details open ontoggle=hit('{MARK}')>",
    f"<input autofocus onfocus=hit('{MARK}') data-{MARK}>",
    f"<form action=https://{MARK}.example/><button>{MARK}</button></form>",
    f"<base href=https://{MARK}.example/>",
    f"<meta http-equiv=refresh content='0;url=https://{MARK}.example/'>",
    f"<link rel=stylesheet href=https://{MARK}.example/x.css>",
    f"<style>@import 'https://{MARK}.example/x.css';main{{display:none}}</style>",
    f"<template x-if=\"hit('{MARK}')\"><p>x</p></template>",
    f"<p id=said class={MARK}>a second live region</p>",
)
BREAKS = (
    BREAK,
    f"\" onmouseover=hit('{MARK}') autofocus onfocus=hit('{MARK}') x=\"",
    f"' onmouseover=hit('{MARK}') x='",
    f"` onmouseover=hit('{MARK}') x=`",
    f" x-init=hit('{MARK}') ",
    f"</textarea><script>hit('{MARK}')</script>",
    f"</title><script>hit('{MARK}')</script>",
    f"</script><script>hit('{MARK}')</script>",
    f"</style></noscript></option></select><img src=x onerror=hit('{MARK}')>",
    f"--><script>hit('{MARK}')</script><!-- {MARK}",
    f"]]><script>hit('{MARK}')</script>",
)
FRAMEWORKS = (
    "{{ 7|add:7 }}{% load static %}{% debug %}{# " + MARK + " #}",
    "${hit('" + MARK + "')}#{hit()}<%= hit() %>[[hit()]]",
    f"<div x-data x-init=\"hit('{MARK}')\" x-html=\"'<b>'\">{MARK}</div>",
    f"<div x-data @click=\"hit('{MARK}')\" :title=\"hit('{MARK}')\">{MARK}</div>",
    f"<div hx-get=/ui/keys/ hx-trigger=load hx-on:htmx:load=\"hit('{MARK}')\">{MARK}</div>",
    f"<div data-hx-post=/ui/keys/make data-hx-trigger=load hx-vals='js:{{a:hit()}}'>{MARK}</div>",
    f"<div hx-swap-oob=true id=content>{MARK}</div>",
    "constructor.constructor(\"hit('" + MARK + "')\")()",
)
LINKS = (
    f"javascript:hit('{MARK}')",
    f"  \x01JaVaScRiPt:hit('{MARK}')//",
    f"java\tscript:hit('{MARK}')",
    f"data:text/html,<script>parent.hit('{MARK}')</script>",
    f"vbscript:hit('{MARK}')",
    f"//{MARK}.example/a",
    f"https:{MARK}.example\\@localhost",
    f"[click](javascript:hit('{MARK}')) ![x](https://{MARK}.example/x.png)",
    f"<https://{MARK}.example> [x]: javascript:hit('{MARK}')",
)
ENTITIES = (
    f"&lt;img src=x onerror=hit('{MARK}')&gt;",
    f"&#x3c;script&#x3e;hit('{MARK}')&#60;/script&#62;",
    f"\\u003cscript\\u003ehit('{MARK}')\\x3c/script\\x3e",
    f"%3Cscript%3Ehit('{MARK}')%3C/script%3E",
    f"\uff1cscript\uff1ehit('{MARK}')\uff1c/script\uff1e",
    f"&{MARK};&#0;&#xD800;&amp;amp;",
)
CELLS = (
    f'=HYPERLINK("https://{MARK}.example","{MARK}")',
    f"+1+cmd|' /C calc'!A0 {MARK}",
    f"-2+3 {MARK}",
    f"@SUM(1) {MARK}",
    f"\t=1+1 {MARK}",
    f"\r=1+1 {MARK}",
    f'a","b\n=1+1 {MARK}',
)
HIDDEN = (
    f"\u202egnp.{MARK}\u202c \u2066turned\u2069 \u200f",
    f"z\u200bero\u2060 width\ufeff {MARK}\u00ad \u2028next\u2029",
    f"\U000e0041\U000e0042 tags {MARK} \u180e\u3164",
    f"\x01\x07\x08\x1b[31m{MARK}\x1b]0;title\x07\x7f\x85\x9b",
    f"Z\u0351\u036b\u0343\u036a{MARK}" + "\u0310" * 40,
)
ODD = (
    f"null undefined NaN None {MARK}",
    f"%s%n%x%d {{0}} {{0.__class__}} %(x)s {MARK}",
    f"'; DROP TABLE memory_note; -- {MARK}",
    f"../../../../etc/passwd {MARK}",
    f"{MARK}" + "w" * 300,
    f"Set-Cookie: a=b\r\n\r\n<script>hit('{MARK}')</script>",
    f"\U0001f469\u200d\U0001f4bb \u05e2\u05d1\u05e8\u05d9\u05ea {MARK} \u0639\u0631\u0628\u064a",
)
PAYLOADS = (*TAGS, *BREAKS, *FRAMEWORKS, *LINKS, *ENTITIES, *CELLS, *HIDDEN, *ODD)

#: Payloads of a value that an index may hold.
# Why: a row of an index has some 2,700 bytes.
SHORT = 4

#: Fields of one thing by several names: a unit is found by its name, a session by its key.
SAME = {"unit_key": "unit", "key": "session", "embedding_model": "model"}

#: Words of ours that say what a row is, so that a page would not show what has another one; every
#: third row has a payload there, too.
STEERING = frozenset({
    "RawItem.source", "Session.source", "Episode.source", "TaskItem.source",
    "RawItem.visibility", "Episode.visibility", "TaskItem.visibility",
    "SearchText.visibility", "Posting.visibility",
    "RawItem.confidentiality", "Episode.confidentiality", "TaskItem.confidentiality",
    "StageRun.stage", "StageRun.status", "StageRun.trigger_source",
    "Claim.stage", "DistillFailure.stage", "DistillFailure.kind",
    "Claim.unit", "DistillFailure.unit",
    "LlmCall.stage", "LlmCall.port", "LlmCall.outcome",
    "Injection.mode", "Injection.outcome", "Injection.gate",
    "Act.verb", "Act.kind", "Act.reference", "Calibration.embedder", "GateRejection.reason",
    "Proposal.status", "Evidence.origin",
    "SegmentCheck.check_kind", "SegmentCheck.outcome", "AccessKey.scopes",
})  # fmt: skip

#: What no payload may stand in, and why.
LEFT_ALONE = {
    "Session.session_key": "who is logged in",
    "Session.session_data": "who is logged in",
    "User.password": "a hash",
    "Permission.name": "the code's own",
    "Permission.codename": "the code's own",
    "ContentType.app_label": "the code's own",
    "ContentType.model": "the code's own",
    "SearchText.terms": "packed numbers",
    "SearchText.counts": "packed numbers",
    "SearchText.heads": "packed numbers",
    "Posting.visibility": "thousands of rows, shown nowhere",
    "WaitingItem.lacks": "a word of the database's own triggers, shown nowhere",
    "WaitingNote.lacks": "the same",
    "OrmQ.payload": "signed by the queue",
    "OrmQ.key": "the queue's own name",
    "Card.state": "a library's own numbers",
    "Calibration.values": "numbers by name",
    "Episode.unit_key": "a kind and a hash of ours, read again as such",
    "Note.unit_key": "the same",
    "Proposal.unit": "the same",
    "Proposal.notes": "filled as it is made: its numbers are places in a text",
}

#: Texts that are kept packed.
PACKED = frozenset({"DistillFailure.reply", "ModelReply.reply"})

#: Under these names JSON has ids and words that steer.
STEERING_KEYS = frozenset({"note", "turn", "unit", "state", "refused", "sha256", "reason_code"})

#: What is an id, a number or a moment, and is left in JSON as it is.
IDENTITY = re.compile(r"[0-9a-f-]{36}|\d+|\d{4}-\d\d-\d\d[T ].*|[0-9a-f]{16,64}")


def dose(name: str, old: str, *, whole: bool = False) -> str:
    """What stands in the place of `old` in a field called `name`; the same for the same, so that
    what belonged together does. It begins with another payload for another text."""
    name = SAME.get(name, name)
    turn = zlib.crc32(f"{name} {old}".encode()) % len(PAYLOADS)
    turned = [*PAYLOADS[turn:], *PAYLOADS[:turn]]
    first, *rest = turned if whole else turned[:SHORT]
    return "\n".join([f"{first} {MARK}-{name}- {BREAK}", *rest, old])


def dose_json(name: str, old: Any) -> Any:
    """The same for a JSON value: its texts, and one key more in each of its objects."""
    if isinstance(old, dict):
        filled = {key: dose_json(key, value) for key, value in old.items()}
        # Why like the others: what counts has numbers, and ours alone writes such objects.
        return filled | {dose(name, "key"): like for like in list(filled.values())[:1]}
    if isinstance(old, list):
        return [dose_json(name, value) for value in old]
    if not isinstance(old, str) or name in STEERING_KEYS or IDENTITY.fullmatch(old):
        return old
    return dose(name, old)


def tables() -> list[type[models.Model]]:
    """Every table of every app."""
    return [model for model in apps.get_models() if not model._meta.proxy]


def texts(model: type[models.Model]) -> Iterator[models.Field[Any, Any]]:
    """The fields of a model that can hold a payload, whatever is in them now."""
    bounded = dict(_bounded(model))
    for field in model._meta.local_fields:
        name = f"{model.__name__}.{field.name}"
        if field.name in bounded or name in LEFT_ALONE or field.is_relation:
            continue
        if isinstance(field, models.GenericIPAddressField):
            continue
        base = field.base_field if isinstance(field, ArrayField) else field
        if isinstance(base, models.CharField | models.TextField | models.JSONField):
            yield field
        elif isinstance(base, models.BinaryField):
            assert name in PACKED, f"{name}: say what it holds"
            yield field


def _bounded(model: type[models.Model]) -> Iterator[tuple[str, list[str]]]:
    """Fields to which the database lets some words alone, and those words."""
    for constraint in model._meta.constraints:
        if isinstance(constraint, models.CheckConstraint):
            for child in getattr(constraint.condition, "children", ()):
                if isinstance(child, tuple) and child[0].endswith("__in"):
                    yield child[0].removesuffix("__in"), list(child[1])


def seed() -> None:
    """Two rows in every table that has none: of what needs no care, by reflection."""
    for _ in range(2):
        for model in tables():
            if model.__name__ in UNSEEDED or rows_of(model).exists():
                continue
            for number in range(2):
                if (made := _made(model, number)) is not None:
                    made.save(force_insert=True)


#: Tables that stay empty.
UNSEEDED = frozenset({"Session", "OrmQ", "WaitingItem", "WaitingNote"})


def rows_of(model: type[models.Model]) -> models.QuerySet[Any]:
    """Every row of a table, whoever owns it."""
    return models.QuerySet(model)


def _made(model: type[models.Model], number: int) -> models.Model | None:
    """A row of a table; None while a table that it points to has none."""
    values: dict[str, Any] = {}
    for field in model._meta.local_fields:
        if field.is_relation:
            assert field.related_model is not None
            related: Any = field.related_model
            found = rows_of(related).order_by("pk")
            there = found[number : number + 1].first() or (
                found.first() if not field.unique else None
            )
            if there is None and not field.null:
                return None
            values[field.name] = there
        elif field.primary_key and isinstance(field, models.AutoField):
            continue
        else:
            values[field.attname] = _value(model, field, number)
    return model(**values)


def _value(model: type[models.Model], field: models.Field[Any, Any], number: int) -> Any:
    words = dict(_bounded(model))
    if field.name in words:
        return words[field.name][number % len(words[field.name])]
    if isinstance(field, ArrayField):
        return [] if isinstance(field.base_field, models.IntegerField) else [f"word {number}"]
    for kind, value in (
        (models.DateTimeField, timezone.now() - timedelta(minutes=number)),
        (models.DateField, timezone.now().date() - timedelta(days=number)),
        (models.BooleanField, bool(number)),
        (models.IntegerField, number + 1),
        (models.FloatField, 0.5),
        (models.DurationField, timedelta(days=1)),
        (models.GenericIPAddressField, "127.0.0.1"),
        (models.JSONField, {"name": f"word {number}"}),
        (models.BinaryField, zlib.compress(b"word")),
        (models.CharField, f"word {number}"),
        (models.TextField, f"word {number}"),
    ):
        if isinstance(field, kind):
            cut: Any = getattr(field, "max_length", None)
            return value[:cut] if isinstance(value, str) else value
    return field.get_default()


def fill() -> dict[str, int]:
    """A payload in each field of each row, as a superuser who is told of no trigger; how many rows
    each field was filled in. The connection must be one that may."""
    filled: dict[str, int] = {}
    for model in tables():
        fields = list(texts(model))
        for field in fields:
            filled[f"{model.__name__}.{field.name}"] = 0
        names = [field.attname for field in fields]
        for number, (pk, *olds) in enumerate(
            rows_of(model).order_by("pk").values_list("pk", *names)
        ):
            changed = {}
            for field, old in zip(fields, olds, strict=True):
                name = f"{model.__name__}.{field.name}"
                if name in STEERING and number % 3:
                    continue
                if old == "" and field.name in _indexed(model) and field.name not in TOGETHER:
                    old = str(pk)
                changed[field.attname] = _filled(model, field, old)
                filled[name] += 1
            if changed:
                rows_of(model).filter(pk=pk).update(**changed)
    return filled


def _filled(model: type[models.Model], field: models.Field[Any, Any], old: Any) -> Any:
    name = field.name
    if isinstance(field, ArrayField):
        if not isinstance(field.base_field, models.TextField):
            return old
        return [dose(name, one) for one in old or ["word"]]
    if isinstance(field, models.JSONField):
        # Why a number: an object that has nothing in it counts something.
        return (
            dose_json(name, old) or {dose(name, "key"): 1}
            if isinstance(old, dict)
            else dose_json(name, old)
        )
    if isinstance(field, models.BinaryField):
        return zlib.compress(dose(name, "", whole=True).encode())
    indexed = field.unique or getattr(field, "db_index", False) or field.name in _indexed(model)
    text = dose(name, old or "", whole=not indexed and SAME.get(name, name) not in TOGETHER)
    cut: Any = getattr(field, "max_length", None)
    # Why the end: it keeps what is unique apart.
    return (
        text if cut is None or len(text) <= cut else f"{BREAK[: cut // 2]}{text[cut // 2 - cut :]}"
    )


#: Fields of one name that some table has an index of: short everywhere, so that they stay the same.
TOGETHER = frozenset({"unit", "session", "source", "model", "sha256", "cwd", "name"})


def _indexed(model: type[models.Model]) -> frozenset[str]:
    listed = [*model._meta.indexes, *model._meta.constraints]
    return frozenset(name.lstrip("-") for one in listed for name in getattr(one, "fields", ()))
