"""Lists: filtered, searched, paged by keys and exported; as fast at the end as at the beginning.

A page never counts a table and never skips rows: it asks for what comes after the last row seen.
Knows nothing about what is listed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core import signing
from django.db.models import Q, QuerySet
from django.http import HttpRequest, QueryDict, StreamingHttpResponse
from django.utils.text import slugify

from memory.lately import counted_to

Rows = Any

#: Rows of a page.
# Why: a screen or two; what a page costs is its rows, each cell of which a template writes.
# Calibrate: the lists in tests/bench/pages.py against their budget.
PAGE_ROWS = 30

#: Up to how many rows are counted.
# Why: "1,000+" tells a person as much as 83,112 does, and costs the same at any size.
COUNTED_ROWS_MAX = 1_000

#: Rows fetched at once by an export.
EXPORT_ROWS_AT_ONCE = 500

#: Characters of a search.
SEARCH_CHARACTERS_MAX = 400

#: Filters that are always in sight; a page names those first that are asked for most.
# Why: on a phone a dozen of them fill the screen before the first row.
FILTERS_IN_SIGHT = 3

#: What makes a spreadsheet take a cell for a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Words:
    """A text to search for: `apply(rows, text)` narrows the rows."""

    name: str
    label: str
    apply: Callable[[Rows, str], Rows]
    kind: str = "words"
    default: str = ""

    def narrow(self, rows: Rows, given: str) -> Rows:
        return self.apply(rows, given[:SEARCH_CHARACTERS_MAX])

    def options(self) -> Sequence[tuple[str, str]]:
        return ()


@dataclass(frozen=True)
class Choice:
    """One of some values, as (value, label); without `apply` it is the column of that name. Where
    nothing was chosen yet, `default` is."""

    name: str
    label: str
    values: Sequence[tuple[str, str]]
    apply: Callable[[Rows, str], Rows] | None = None
    kind: str = "choice"
    default: str = ""

    def narrow(self, rows: Rows, given: str) -> Rows:
        if given not in dict(self.values):
            return rows.none()
        return self.apply(rows, given) if self.apply else rows.filter(**{self.name: given})

    def options(self) -> Sequence[tuple[str, str]]:
        return self.values


@dataclass(frozen=True)
class Day:
    """A date; `lookup` says what it bounds, and an upper bound lets the day itself in. What is no
    date bounds nothing."""

    name: str
    label: str
    lookup: str
    kind: str = "date"
    default: str = ""

    def narrow(self, rows: Rows, given: str) -> Rows:
        try:
            day = date.fromisoformat(given)
            moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
            if self.lookup.endswith(("__lt", "__lte")):
                moment += timedelta(days=1)
        except (ValueError, OverflowError):
            return rows
        return rows.filter(**{self.lookup: moment})

    def options(self) -> Sequence[tuple[str, str]]:
        return ()


Filter = Words | Choice | Day


@dataclass(frozen=True)
class Column:
    """A column of an export."""

    name: str
    value: Callable[[Any], Any]


@dataclass(frozen=True)
class Shown:
    """A filter with what was given to it, for the form."""

    name: str
    label: str
    kind: str
    value: str
    options: Sequence[tuple[str, str]] = ()
    #: It is not as it was before anybody chose.
    given: bool = False


@dataclass(frozen=True)
class Listed:
    """A page of rows and the ways on from it; `export` is the answer when a file was asked for."""

    rows: list[Any]
    filters: tuple[Shown, ...]
    total: str
    older: str = ""
    newer: str = ""
    exports: tuple[tuple[str, str], ...] = ()
    filtered: bool = False
    keep: tuple[tuple[str, str], ...] = field(default=())
    #: The address of the list without filters.
    cleared: str = "?"
    export: StreamingHttpResponse | None = None

    @property
    def fold(self) -> int:
        """From which filter on they are folded away; 0 where all of them are in sight."""
        return FILTERS_IN_SIGHT + 1 if len(self.filters) > FILTERS_IN_SIGHT + 1 else 0

    @property
    def unfolded(self) -> bool:
        """One of those folded away was given, so that all are in sight."""
        return any(one.given for one in self.filters[FILTERS_IN_SIGHT:])


def list_rows(
    request: HttpRequest,
    rows: QuerySet[Any, Any],
    *,
    order: Sequence[str],
    filters: Sequence[Filter] = (),
    columns: Sequence[Column] = (),
    title: str = "rows",
    page_rows: int = PAGE_ROWS,
    keep: Sequence[str] = (),
    counted_rows: int = COUNTED_ROWS_MAX,
    counted_in_order: bool = False,
) -> Listed:
    """Narrow, order and cut `rows` as the request says.

    `order` names plain columns, "-" before what falls, and ends with one that is unique. `keep`
    names other parameters of the page that its links and its form carry along. With
    `counted_in_order` rows are counted as they are listed: for those of which it takes long to say
    whether they belong to it, so that no more are asked than are counted. A cursor that somebody
    made up begins at the beginning.
    """
    given = _short(request.GET)
    shown = tuple(_shown(one, given) for one in filters)
    narrowed: Any = rows
    for one, told in zip(filters, shown, strict=True):
        if told.value:
            narrowed = one.narrow(narrowed, told.value)
    narrowed = narrowed.order_by(*order)
    export = _export(given.get("format", ""), narrowed, columns, title)
    if export is not None:
        return Listed([], shown, "", export=export)
    page, older, newer = _cut(narrowed, order, given, page_rows)
    kept = tuple((name, str(given[name])) for name in keep if given.get(name))
    return Listed(
        rows=page,
        filters=shown,
        total=_total(narrowed if counted_in_order else narrowed.order_by(), counted_rows),
        older=_url(given, after=_cursor(page[-1], narrowed, order)) if older else "",
        newer=_url(given, before=_cursor(page[0], narrowed, order)) if newer else "",
        exports=tuple(
            (name.upper(), _url(given, format=name)) for name in ("csv", "json") if columns
        ),
        filtered=any(one.value for one in shown),
        keep=kept,
        cleared=f"?{urlencode([*kept, *((one.name, '') for one in filters if one.default)])}",
    )


def _shown(one: Filter, given: QueryDict) -> Shown:
    value = _clean(given.get(one.name, one.default))
    return Shown(one.name, one.label, one.kind, value, one.options(), value != one.default)


def _short(given: QueryDict) -> QueryDict:
    """What was given, no longer than what is searched for: forms and links say it again. But for
    cursors, which are not."""
    cut = given.copy()
    for name, values in given.lists():
        if name not in ("after", "before"):
            cut.setlist(name, [value[:SEARCH_CHARACTERS_MAX] for value in values])
    return cut


def _clean(value: str) -> str:
    """A parameter without what Postgres cannot hold."""
    return value.replace("\0", "").strip()


def _cut(
    rows: Any, order: Sequence[str], given: QueryDict, most: int
) -> tuple[list[Any], bool, bool]:
    """The rows of the page, and whether there are older and newer ones."""
    after = _position(given.get("after", ""), rows, order)
    before = _position(given.get("before", ""), rows, order)
    if before is not None:
        backwards = [_reverse(name) for name in order]
        found = list(rows.filter(_beyond(backwards, before)).order_by(*backwards)[: most + 1])
        # What came before may be gone from the list meanwhile: then this is its beginning.
        if found:
            return found[:most][::-1], True, len(found) > most
    if after is not None:
        rows = rows.filter(_beyond(order, after))
    found = list(rows[: most + 1])
    return found[:most], len(found) > most, after is not None and bool(found)


def _reverse(name: str) -> str:
    return name[1:] if name.startswith("-") else f"-{name}"


def _beyond(order: Sequence[str], values: Sequence[Any]) -> Q:
    """What comes after the row with these values: as a comparison of tuples, spelled out."""
    beyond = Q()
    for place, name in enumerate(order):
        equal = {order[n].lstrip("-"): values[n] for n in range(place)}
        step = "lt" if name.startswith("-") else "gt"
        beyond |= Q(**equal, **{f"{name.lstrip('-')}__{step}": values[place]})
    # Said again for the first column alone: that is what an index can be entered by.
    first = "lte" if order[0].startswith("-") else "gte"
    return Q(**{f"{order[0].lstrip('-')}__{first}": values[0]}) & beyond


def _cursor(row: Any, rows: Any, order: Sequence[str]) -> str:
    """The place of a row in a list, signed: what comes back is what was given out for this list."""
    values = [_value(row, name.lstrip("-")) for name in order]
    told = [v if isinstance(v, int | float) else _told(v) for v in values]
    return signing.dumps(told, salt=_salt(rows, order))


def _told(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _salt(rows: Any, order: Sequence[str]) -> str:
    return f"{rows.model._meta.label} {' '.join(order)}"


def _value(row: Any, name: str) -> Any:
    return row[name] if isinstance(row, dict) else getattr(row, name)


def _position(cursor: str, rows: Any, order: Sequence[str]) -> list[Any] | None:
    """The values behind a cursor; None when it is none that was given out for this list."""
    try:
        values = signing.loads(cursor, salt=_salt(rows, order))
    except (signing.BadSignature, ValueError):
        return None
    return [_parsed(rows, name.lstrip("-"), v) for name, v in zip(order, values, strict=True)]


def _parsed(rows: Any, name: str, value: Any) -> Any:
    """A value of a cursor as its column has it."""
    if name in rows.query.annotations:
        return value
    column = rows.model._meta.pk if name == "pk" else rows.model._meta.get_field(name)
    if column.get_internal_type() == "DateTimeField":
        return datetime.fromisoformat(value)
    return UUID(value) if column.get_internal_type() == "UUIDField" else value


def _total(rows: Any, most: int) -> str:
    """How many rows there are, counted to a bound."""
    return counted_to(rows.values("pk")[: most + 1].count(), most)


def _url(given: QueryDict, **changes: str) -> str:
    """The page's own address with these parameters in place of older ways on."""
    query = given.copy()
    for name in ("after", "before", "format"):
        query.pop(name, None)
    for name, value in changes.items():
        query[name] = value
    return f"?{query.urlencode()}"


def _export(
    form: str, rows: Any, columns: Sequence[Column], title: str
) -> StreamingHttpResponse | None:
    if form not in ("csv", "json") or not columns:
        return None
    made, kind = (_csv, "text/csv") if form == "csv" else (_json, "application/json")
    name = f"{slugify(title) or 'rows'}.{form}"
    return StreamingHttpResponse(
        made(rows, columns),
        content_type=f"{kind}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _values(rows: Any, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    for row in rows.iterator(chunk_size=EXPORT_ROWS_AT_ONCE):
        yield {column.name: column.value(row) for column in columns}


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _csv(rows: Any, columns: Sequence[Column]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow([column.name for column in columns])
    for values in _values(rows, columns):
        yield writer.writerow([_cell(value) for value in values.values()])


def _cell(value: Any) -> str:
    """A value as text that no spreadsheet runs."""
    if isinstance(value, list | dict):
        value = json.dumps(value, default=str, ensure_ascii=False)
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    text = text.replace("\0", "")
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _json(rows: Any, columns: Sequence[Column]) -> Iterator[str]:
    yield "["
    for number, values in enumerate(_values(rows, columns)):
        yield ("," if number else "") + "\n" + json.dumps(values, default=str, ensure_ascii=False)
    yield "\n]\n"
