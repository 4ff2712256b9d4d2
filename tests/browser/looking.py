"""A page looked at for what payloads may have done to it, and the addresses of all pages.

Knows how text becomes more than text in a browser; asserts nothing about what a page is for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.contrib import admin
from django.db.models import Q
from django.urls import URLPattern
from playwright.sync_api import Page

from memory.models import (
    Claim,
    DedupVerdict,
    Episode,
    GateRejection,
    Injection,
    Note,
    Project,
    RawItem,
    StageRun,
    TaskItem,
)
from memory.text.seen import UNSEEN
from tests import hostile
from tests.browser.ground import Watched

#: What the page of one thing shows.
SHOWS = {
    "episode": Episode, "item": RawItem, "run": StageRun, "project": Project,
    "review-hold": DedupVerdict, "rejection": GateRejection, "parked-unit": Claim,
    "task": TaskItem, "note": Note, "injection": Injection,
}  # fmt: skip

#: Rows of each that are opened.
OPENED = 4

#: What the browser says of a page that is not for who asks, and of one without an icon.
NOT_THERE = re.compile(r"status of 404|favicon\.ico")

#: What the browser says of a page that refused.
REFUSED = re.compile(r"status of (40[39]|422)|Status Error Code (40[49]|422)")

#: What the theme does on pages of its own: it has icons and inputs by the value of a field.
THEMED = re.compile("wide: ")

#: Which field a payload stood in.
NAMED = re.compile(f"{hostile.MARK}-([a-z_0-9]+)-")

#: Fields that have words of ours alone, which nobody else can write: shown as they are.
OURS = frozenset({
    "action", "boundary_reason", "check_kind", "confidentiality", "gate", "happening", "kind",
    "method", "mode", "outcome", "opening", "origin", "port", "prefix", "project_method", "scopes",
    "sha256", "stage", "status", "trigger_source", "verb", "visibility", "worker", "door", "level",
    "refused", "report", "flags",
})  # fmt: skip

#: What tells of a payload that ran, and of what the policy stopped.
WATCH = """
window.hit = () => console.error("a payload ran");
document.addEventListener("securitypolicyviolation",
    (event) => console.error("policy: " + event.violatedDirective + " " + event.sample));
"""

#: What of a page holds payloads, in which attributes, and where its links lead.
LOOK = """(mark) => {
    const plain = new Set(["value", "title", "aria-label", "placeholder", "datetime"]);
    const odd = [];
    const texts = [];
    for (const one of document.querySelectorAll("*")) {
        const tag = one.tagName.toLowerCase();
        if (["iframe", "object", "embed", "base", "frame"].includes(tag)) odd.push(tag);
        for (const { name, value } of one.attributes) {
            const marked = value.includes(mark);
            if (/^on/.test(name) || name.includes(mark)) odd.push(`<${tag} ${name}>`);
            if (name === "href" || name === "action" || name === "formaction" || name === "src") {
                const to = new URL(value, location.href);
                const theirs = one.matches(".prose a[rel~=noopener][rel~=noreferrer]") &&
                    /^(https?|mailto):$/.test(to.protocol);
                if (to.origin !== location.origin && !theirs) odd.push(`${name}=${value}`);
                if (to.pathname.includes(mark)) odd.push(`${name}=${value}`);
            } else if (marked && !plain.has(name)) odd.push(`<${tag} ${name}=${value}>`);
        }
    }
    for (const id of ["content", "said", "menu"]) {
        if (document.querySelectorAll(`[id=${id}]`).length > 1) odd.push(`two of #${id}`);
    }
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const { tagName, className } = walker.currentNode.parentElement;
        if (!["SCRIPT", "STYLE", "TEXTAREA", "NOSCRIPT"].includes(tagName)) {
            texts.push(`${tagName}.${className}: ${walker.currentNode.data}`);
        }
    }
    const room = innerWidth;
    if (document.querySelector(".argus") && document.documentElement.scrollWidth > room) {
        // What sticks out and is in nothing that scrolls by itself.
        const out = [...document.querySelectorAll("body *")].filter((one) =>
            one.getBoundingClientRect().right > room + 1 && !one.parentElement.closest(".scroll"));
        const last = out.at(-1);
        odd.push(`wide: ${last?.tagName} ${last?.className} in ${last?.parentElement.className}`);
    }
    return { odd, texts };
}"""


class Looked:
    """What was seen of pages, and what was wrong in which."""

    def __init__(self, eve: Watched) -> None:
        self.eve, self.wrong = eve, list[str]()
        self.seen, self.pressed = set[str](), 0

    def open(self, address: str, *, themed: bool = False, fails: bool = False) -> None:
        """Go there and look. `themed`: a page of the theme's own; `fails`: it may refuse."""
        answer = self.eve.page.goto(self.eve.site + address, wait_until="load")
        assert answer is not None
        if answer.status >= 500:
            self.wrong.append(f"{address}: {answer.status}")
        self.look(address, themed=themed, fails=fails)

    def swap(self, address: str) -> None:
        """The piece of a page, as htmx puts it in."""
        page = self.eve.page
        with page.expect_response(lambda answer: address.partition("?")[0] in answer.url):
            page.evaluate("(at) => {htmx.ajax('GET', at, {target: '#content'})}", address)
        page.wait_for_timeout(100)
        self.look(f"{address} (htmx)", themed=True)

    def look(self, address: str, *, themed: bool = False, fails: bool = False) -> None:
        """What is in the page now."""
        self.pressed += 1
        told = self.eve.page.evaluate(LOOK, hostile.MARK)
        told["odd"] = [one for one in told["odd"] if not (themed and THEMED.match(one))]
        self.wrong += [f"{address}: {one}" for one in told["odd"]]
        for one in self.eve.troubles:
            if not (NOT_THERE.search(one) or (fails and REFUSED.search(one))):
                self.wrong.append(f"{address}: {one}")
        self.eve.troubles.clear()
        for text in told["texts"]:
            self.seen.update(NAMED.findall(text))
            where, _, words = text.partition(": ")
            turns = UNSEEN.search(words) and not set(NAMED.findall(words)) & OURS
            if turns and not (themed and "/ui/auth/" in address):
                self.wrong.append(f"{address}: hides or turns in {where}: {words[:60]!r}")

    def done(self) -> None:
        """Nothing was wrong."""
        wrong = sorted(set(self.wrong))
        assert wrong == [], "\n".join(wrong)


def routes() -> list[URLPattern]:
    return list(admin.site._wrapped.pages())  # type: ignore[attr-defined]


#: What of a page comes when it is asked for.
LATER = {
    "note": ("neighbours", "trace"),
    "episode": ("attributions", "calls"),
    "project": ("acts", "offered"),
}


def opened(actions: Sequence[str]) -> list[str]:
    """The addresses of all pages and of some rows of each."""
    found = []
    for route in routes():
        address = f"/ui/{route.pattern}"
        if "<" not in address:
            found += [address] if address not in actions else []
        elif route.name in SHOWS:
            rows = hostile.rows_of(SHOWS[route.name]).order_by("pk")
            if SHOWS[route.name] is Claim:
                rows = rows.exclude(parked_at=None)
            if SHOWS[route.name] is Note:
                # The ids say nothing of when, and few have been retired by a payload.
                marked = rows.annotate(marked=Q(retired_reason__contains=hostile.MARK))
                rows = marked.order_by("-marked", "pk")
            ids = list(rows.values_list("pk", flat=True))
            some = [*ids[:OPENED], *ids[-OPENED:]] if len(ids) > 2 * OPENED else ids
            here = [re.sub("<.*?>", str(pk), address) for pk in some]
            later = [f"?part={part}" for part in LATER.get(route.name, ())]
            found += [one + part for one in here for part in ("", *later)]
    return found


def actions(site: str, page: Page) -> list[str]:
    """The addresses that take posts alone; each that takes an id has been said what it shows."""
    found = []
    for route in routes():
        if route.name in SHOWS:
            continue
        address = re.sub(
            "<uuid:.*?>", "00000000-0000-0000-0000-000000000001", f"/ui/{route.pattern}"
        )
        address = re.sub("<.*?>", "1", address)
        status = page.request.get(site + address).status
        if status == 405:
            found.append(address)
        elif "<" in str(route.pattern):
            raise AssertionError(f"{route.name}: say in SHOWS what it is a page of")
    return found
