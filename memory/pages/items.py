"""One raw item: the words as they were captured, and who cites which of them."""

from __future__ import annotations

import json

from django.http import HttpResponse

from memory.shown import items as shown
from memory.web.marks import highlight
from memory.web.page import HtmxHttpRequest, number, page, show
from memory.web.viewer import Viewer

#: Characters of metadata, flags or locator that are shown.
FIELD_CHARACTERS_MAX = 4_000

#: Digits of a place in a body.
DIGITS_MAX = 9


@page("look")
def item(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """The item; `start` and `end` say which words to show, `from` which part."""
    read = shown.read(
        pk,
        sight=viewer.rows,
        start=_place(request, "start") or 0,
        end=_place(request, "end"),
        whole_from=_place(request, "from"),
    )
    context = {
        "title": f"{read.item.kind.capitalize()} {pk}",
        "read": read,
        "item": read.item,
        "pieces": highlight(read.text, read.spans),
        "fields": [
            (name, json.dumps(value, ensure_ascii=False, indent=1)[:FIELD_CHARACTERS_MAX])
            for name in ("flags", "locator", "metadata")
            if (value := getattr(read.item, name))
        ],
    }
    return show(request, "memory/item.html", context)


def _place(request: HtmxHttpRequest, name: str) -> int | None:
    return number(request.GET.get(name, ""), digits=DIGITS_MAX)
