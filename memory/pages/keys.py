"""Keys: which there are, what they may, when they were used last; make one, revoke one.

A key stands for whoever holds it, so a person makes keys of its own principal alone, and gives no
scope that it has not itself.
"""

from __future__ import annotations

from typing import Any

from django.core import signing
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone

from memory.access import SCOPES, create_key, new_prefix, revoke_one
from memory.api import KEY_NAME_CHARACTERS_MAX
from memory.errors import Forbidden, RefusedError
from memory.shown.keys import FILTERS, columns, visible_keys
from memory.text.clean import clean_text
from memory.text.secrets import redact
from memory.web.listing import list_rows
from memory.web.page import HtmxHttpRequest, action, answer, page, show
from memory.web.viewer import Viewer

#: Scope -> what it lets a program do, and what a person needs to give it.
SCOPES_TOLD: dict[str, tuple[str, str]] = {
    "capture": ("store what is said", "operate"),
    "recall": ("ask for notes", "operate"),
    "operate": ("run stages, read numbers, calibrate", "operate"),
    "resolve": ("decide what waits, show rows to others", "decide"),
}

assert set(SCOPES_TOLD) == set(SCOPES)


@page("look")
def keys(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponseBase:
    """The viewer's keys; those of everybody where it asked for all owners."""
    listed = list_rows(
        request,
        visible_keys(viewer.principal, everyones=viewer.all_owners),
        order=("-pk",),
        filters=FILTERS,
        columns=columns(),
        title="keys",
    )
    if listed.export:
        return listed.export
    context = {"title": "Keys", "listed": listed, **_form(request, viewer)}
    return show(request, "memory/keys.html", context)


@action("operate")
def make(request: HtmxHttpRequest, viewer: Viewer) -> HttpResponse:
    """Make a key and show it, this once: in the answer and nowhere else, which nobody may keep."""
    wanted = request.POST.getlist("scope")
    if lacking := [scope for scope in wanted if scope in SCOPES and scope not in _may_give(viewer)]:
        raise Forbidden(f"to give {', '.join(lacking)} one needs it oneself: ask a reviewer")
    name = redact(clean_text(request.POST.get("name", ""))[0]).text[:KEY_NAME_CHARACTERS_MAX]
    made, row = create_key(
        owner=viewer.principal.name,
        scopes=wanted,
        name=name.strip(),
        by=viewer.principal,
        prefix=_prefix(request.POST.get("form", ""), viewer),
    )
    context = {"title": "A new key", "made": made, "key": row}
    response = show(request, "memory/key_made.html", context)
    response["Cache-Control"] = "private, no-store"
    return response


@action("operate")
def revoke(request: HtmxHttpRequest, viewer: Viewer, pk: int) -> HttpResponse:
    """Revoke a key and those that it made, at once."""
    revoke_one(
        pk,
        by=viewer.principal,
        now=timezone.now(),
        reason=request.POST.get("reason", ""),
        everyones=viewer.all_owners,
    )
    rows = visible_keys(viewer.principal, everyones=viewer.all_owners)
    context = {"key": get_object_or_404(rows, pk=pk)}
    return answer(
        request, "memory/_key_row.html", context, to=reverse("admin:keys"), said="Revoked."
    )


def _may_give(viewer: Viewer) -> list[str]:
    return [scope for scope, (_, needs) in SCOPES_TOLD.items() if viewer.may(needs)]


def _form(request: HtmxHttpRequest, viewer: Viewer) -> dict[str, Any]:
    """The scopes that the viewer may give, with those ticked that a link asked for."""
    ticked = request.GET.getlist("scope") or ["capture", "recall"]
    return {
        "scopes": [(s, SCOPES_TOLD[s][0], s in ticked) for s in _may_give(viewer)],
        "name_characters_max": KEY_NAME_CHARACTERS_MAX,
        # Why: two presses of one button are one key; the first answer is lost with its secret.
        "form": signing.dumps(new_prefix(), salt=_salt(viewer)) if viewer.can_operate else "",
    }


def _prefix(form: str, viewer: Viewer) -> str:
    """The prefix that the form was given for its key; "" for a request of no form. Raises
    RefusedError for one that was not given to this viewer."""
    if not form:
        return ""
    try:
        return str(signing.loads(form, salt=_salt(viewer)))
    except signing.BadSignature:
        raise RefusedError("this form is not of here: load the page again") from None


def _salt(viewer: Viewer) -> str:
    return f"key form of {viewer.principal.pk}"
