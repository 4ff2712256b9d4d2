"""Notes rendered as Markdown: what people write looks right, and nothing in it can act."""

from __future__ import annotations

import pytest
from django.utils.safestring import SafeString

from memory.web.rendered import RENDERED_CHARACTERS_MAX, rendered

HOSTILE = (
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    "![x](https://evil.example/pixel.png)",
    "<script>window.hit = 1</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href=https://x.example style='position:fixed;inset:0'>x</a>",
    "<div x-data x-init='window.hit = 1'>x</div>",
    "<p hx-get='/ui/keys/make' hx-trigger=load>x</p>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>1</script>'></iframe>",
    "`<script>window.hit = 1</script>`",
    "<form action=https://evil.example><button>x</button></form>",
    "[x]: javascript:alert(1)\n\n[x]",
    "<math><mtext></p><style><img src=x onerror=1>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_it_leaves_nothing_that_acts(text: str) -> None:
    html = rendered(text).lower()
    for bad in ("<script", "<img", "<svg", "<iframe", "<form", "<style", "<div", "style=", " on",
                'href="javascript', 'href="data', 'href="vbscript', " x-", " hx-"):  # fmt: skip
        assert bad not in html, html


def test_it_shows_what_people_write() -> None:
    html = rendered("Build with **Node 22**, because `.nvmrc` pins it:\n\n- a\n- b")
    assert "<strong>Node 22</strong>" in html
    assert "<code>.nvmrc</code>" in html
    assert html.count("<li>") == 2
    link = rendered("[docs](https://docs.example/a?b=1)")
    assert 'href="https://docs.example/a?b=1"' in link
    assert 'rel="noopener noreferrer nofollow"' in link


def test_it_marks_what_would_turn_the_text_around() -> None:
    assert "\u202e" not in rendered("a\u202eb")


def test_it_leaves_a_long_text_to_the_template() -> None:
    text = "<b>" * RENDERED_CHARACTERS_MAX
    assert rendered(text) == text
    assert not isinstance(rendered(text), SafeString)


def test_it_leaves_a_text_that_was_made_to_cost_time_to_the_template() -> None:
    text = "[" * (RENDERED_CHARACTERS_MAX - 10)
    assert rendered(text) == text
    assert not isinstance(rendered(text), SafeString)
