"""What a person put between `<private>` and `</private>`: taken out before anything leaves.

A tag is a tag wherever it stands, in prose, in quotes and in code (`List<private>`, too): what is
lost then is a remark, what would leak is what somebody asked to keep. Knows nothing about secrets
or about who asks.
"""

from __future__ import annotations

from memory.text.folding import odd, places
from memory.text.patterns import late

MARK = "[private]"

_HEAD = late(r"(?i)<\s*(?:(?P<close>/)\s*)?private(?=[\s/>])")


def strip_private(text: str) -> tuple[str, int]:
    """Return the text with each private span as `[private]`, and how many there were.

    The tag is known in any case, with blanks or attributes in it, in full-width signs and through
    characters that show nothing. Nested spans are one. A span that is never closed goes to the end
    of the text, and `<private/>` opens one, as it does in HTML; a closing tag alone stays.
    """
    table = odd(text)
    seen = text.translate(table) if table else text
    # Why not the whole word: in capitals a Turkish keyboard writes its i with a dot.
    if "<" not in seen or "vate" not in seen.lower():
        return text, 0
    spans = _spans(seen)
    if not spans:
        return text, 0
    stands = places(text, table) if table else range(len(text) + 1)
    kept: list[str] = []
    last = 0
    for start, end in spans:
        kept += [text[last : stands[start]], MARK]
        last = stands[end - 1] + 1
    return "".join([*kept, text[last:]]), len(spans)


def _spans(seen: str) -> list[tuple[int, int]]:
    """(start, end) of each outermost span."""
    found: list[tuple[int, int]] = []
    start = depth = at = 0
    while True:
        tag = _HEAD.search(seen, at)
        if tag is None:
            break
        at = tag.end()
        if not tag.group("close"):
            end = seen.find(">", at) + 1
            if not end:
                break
            start = start if depth else tag.start()
            depth, at = depth + 1, end
            continue
        # A closing tag may not swallow an opening one; an opening tag takes all up to its ">".
        other = seen.find("<", at)
        end = seen.find(">", at, other if other >= 0 else len(seen)) + 1
        if not end or not depth:
            continue
        depth, at = depth - 1, end
        if not depth:
            found.append((start, at))
    if depth:
        found.append((start, len(seen)))
    return found
