"""How pages write moments, numbers and pieces of texts. Everything is escaped by the templates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from memory.text import seen
from memory.web import marks
from memory.web.addresses import at

register = template.Library()

register.filter(at)
register.filter(marks.short)

#: Markup of ours that stands between values.
SELECTED = mark_safe(" selected")
PRESSED = mark_safe(' aria-pressed="true"')
BORDER = mark_safe("<strong>a border</strong>")

#: What an age is told in: so many seconds make one of these, and up to how many of them.
UNITS = ((1, "s", 60), (60, "min", 60), (3_600, "h", 48), (86_400, "d", 400))
YEAR_SECONDS = 31_557_600


@register.filter
def ago(moment: datetime | None) -> str:
    """How long ago, or how soon; the moment itself stands in the title."""
    if moment is None:
        return "never"
    seconds = (timezone.now() - moment).total_seconds()
    told = age(abs(seconds))
    told = f"{told} ago" if seconds >= 0 else f"in {told}"
    return _time(moment, told)


@register.filter
def clock(moment: datetime | None) -> str:
    """Day and minute in UTC."""
    return "" if moment is None else _time(moment, f"{moment:%Y-%m-%d %H:%M}")


def _time(moment: datetime, told: str) -> str:
    whole = moment.isoformat()
    exact = f"{whole[:10]} {whole[11:19]}Z"
    # Why not escaped: a list has dozens of these, and there is no word of anybody in them.
    return SafeString(f'<time datetime="{whole}" title="{exact}">{told}</time>')


@register.filter
def age(seconds: float | None) -> str:
    """A length of time in its largest unit: 40 s, 12 min, 5 h, 3 d, 2 y."""
    if seconds is None:
        return ""
    for size, name, most in UNITS:
        if seconds < size * most:
            return f"{int(seconds // size)} {name}"
    return f"{seconds / YEAR_SECONDS:.1f} y"


@register.filter
def of(count: Any, noun: str) -> str:
    """A count and what it is of: "1 verdict", "1,000+ verdicts", which `pluralize` takes for no
    number."""
    return f"{count} {noun}" if str(count) == "1" else f"{count} {noun}s"


@register.filter
def score(value: Any) -> str:
    """A score with three digits that count; a dash when there is none."""
    return "–" if not isinstance(value, int | float) else f"{value:.3g}"


@register.filter
def percent(value: Any) -> str:
    return "–" if not isinstance(value, int | float) else f"{value:.0%}"


@register.filter
def thousands(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


@register.filter
def get(mapping: Any, key: Any) -> Any:
    """The value under a key that only a variable names; nothing when there is none."""
    return mapping.get(key, "") if hasattr(mapping, "get") else ""


@register.filter
def visible(text: Any) -> str:
    """Captured or model text with a mark for each character that would hide or turn others."""
    return seen.visible(str(text))


@register.filter
def place(locator: Any) -> str:
    """Where in its source something stands: line, piece or name, then from where to where: bytes
    of a transcript, characters of a document."""
    if not isinstance(locator, dict):
        return str(locator)
    told = [f"{name} {value}" for name, value in locator.items() if name not in ("start", "end")]
    told += [f"{name} {locator[name]}" for name in ("start", "end") if name in locator]
    return ", ".join(told)


@register.filter
def coded(text: str) -> str:
    """Words of ours with what stands between backticks as code."""
    parts = escape(text).split("`")
    told = (f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
    # A backtick without its fellow is no more than that.
    return mark_safe("".join(told) if len(parts) % 2 else escape(text))


@register.filter
def prose(text: str) -> str:
    """A note's text as it was meant to be read; what is not harmless in it is gone."""
    # Why here: the two libraries are loaded by the one page that renders.
    from memory.web.rendered import rendered

    return rendered(text)


@register.inclusion_tag("ui/_pieces.html")
def pieces(told: Sequence[Any]) -> dict[str, Any]:
    """Pieces of a text, each in what its kind says: ins, del, evidence, cut, odd."""
    return {"pieces": told}


# Written here and not by templates, which take ten times as long for a list: every value goes
# through `_html`, which escapes it, whatever it is.


def _html(value: Any) -> str:
    """A value as HTML: escaped, but for markup of ours."""
    # Why not Django's `conditional_escape`: a board has hundreds of values, and it looks at each
    # for three times as long as escaping takes.
    if isinstance(value, SafeString):
        return value
    told = str(value)
    return told if isinstance(value, (int, float)) else escape(told)


def _formed(form: str, *values: Any) -> SafeString:
    """Markup of ours with these values in its places."""
    return SafeString(form.format(*map(_html, values)))


def _joined(form: str, rows: Iterable[Sequence[Any]], between: str = "") -> SafeString:
    """The same once for each of these rows of values."""
    return SafeString(between.join([form.format(*map(_html, row)) for row in rows]))


@register.simple_tag
def options(shown: Any) -> str:
    """The values of a filter (memory.web.listing.Shown) as a select has them, the given one
    selected: by a template they would take as long as the rest of a page."""
    return _joined(
        '<option value="{}"{}>{}</option>',
        (
            (value, SELECTED if value == shown.value else "", seen.visible(label))
            for value, label in shown.options
        ),
    )


@register.simple_tag
def bars(plot: Any) -> str:
    """The bars of a histogram (memory.web.charts.Histogram): hundreds, of numbers alone."""
    return _joined(
        '<rect class="bar {}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
        ((bar.kind, bar.x, bar.y, bar.width, bar.height, bar.label) for bar in plot.bars),
        "\n",
    )


@register.simple_tag
def counts(plot: Any) -> str:
    """The same as rows of a table: from, to, and how many of each kind."""
    rows = [(low, high, *some) for low, high, some in plot.rows]
    cells = '<td class="number">{}</td>' * len(rows[0] if rows else ())
    return _joined(f"<tr>{cells}</tr>", rows)


@register.simple_tag
def values(spark: Any) -> str:
    """What a sparkline (memory.web.charts.Sparkline) was drawn from, as rows of a table: a board
    has a dozen of them, each of a fortnight."""
    return _joined(
        '<tr><th scope="row">{}</th><td class="number">{}</td></tr>',
        ((name, f"{value:,.10g}") for name, value in spark.rows),
    )


@register.simple_tag
def facts(told: Sequence[tuple[str, Any]]) -> str:
    """Names and values as a list of facts has them: each stage of a board has some."""
    return _joined("<dt>{}</dt><dd>{}</dd>", told)


@register.simple_tag
def looks(checks: Sequence[Any]) -> str:
    """Looks for a border (SegmentCheck), a line each: an episode has more of them than turns."""
    return _joined("<li>{}: {}{}</li>", map(_look, checks))


def _look(one: Any) -> tuple[str, str, str]:
    if one.outcome == "checked":
        told = _formed("{}: {}", _measured(one), BORDER if one.fired else "no border")
    else:
        told = _formed('<span class="tag off">{}</span>', one.outcome)
    by = _formed(' <span class="muted">{}</span>', seen.visible(one.model)) if one.model else ""
    return one.check_kind, told, by


def _measured(look: Any) -> str:
    """What a look for a border measured and against what, in its unit."""
    unit = {"gap": " minutes", "size": " turns"}.get(look.check_kind)
    if unit is None or look.score is None or look.threshold is None:
        return f"{score(look.score)}{unit or ' alike'}, limit {score(look.threshold)}"
    most = f"{look.threshold:,.0f}"
    # A pause of 30.4 minutes is over 30.
    digits = 1 if look.score < look.threshold + 1 and look.score % 1 else 0
    return f"{look.score:,.{digits}f}{unit}, limit {most}"


@register.simple_tag
def buttons(name: str, values: Sequence[tuple[str, str]], pressed: Any, title: str) -> str:
    """The buttons of a form, (value, label) each, those of `pressed` pressed; `title` tells one row
    of them from the next: a recall has dozens."""
    return _joined(
        '<button class="button" name="{}" value="{}" aria-label="{}: {}"{}>{}</button>',
        (
            (name, value, label, title, PRESSED if value in pressed else "", label)
            for value, label in values
        ),
    )
