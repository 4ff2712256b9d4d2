"""Notes as people read them: Markdown to HTML, and of that only what can do nothing.

Pure. Knows nothing about whose words they are: all of them are taken for hostile.
"""

from __future__ import annotations

import markdown
import nh3
from django.utils.safestring import SafeString, mark_safe

from memory.gate import CONTENT_CHARACTERS_MAX
from memory.text.seen import visible

#: Characters that are rendered; a longer text is shown as it is.
# Why: no note that went through the gate is longer.
RENDERED_CHARACTERS_MAX = CONTENT_CHARACTERS_MAX

#: Brackets of a text that is rendered.
# Why: the library's time for them grows with more than their square: two thousand take seconds.
BRACKETS_MAX = 100

#: What may stand in a rendered text. No picture (it would be fetched), no heading (the page has its
#: own), nothing with a style, a name, an id or a title that is read only by who points at it.
TAGS = {"a", "blockquote", "br", "code", "em", "li", "ol", "p", "pre", "strong", "ul"}

ATTRIBUTES: dict[str, set[str]] = {"a": {"href"}, "*": set()}

SCHEMES = {"http", "https", "mailto"}


def rendered(text: str) -> SafeString | str:
    """The text as HTML that is safe to show; plain, for a template to escape, when it is long or
    made to cost time."""
    shown = visible(text)
    if len(text) > RENDERED_CHARACTERS_MAX or text.count("[") > BRACKETS_MAX:
        return shown
    html = nh3.clean(
        markdown.markdown(shown, output_format="html"),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    # What makes it safe is the line above, and nothing goes in after it.
    return mark_safe(html)
