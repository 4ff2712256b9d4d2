"""Titles and keywords made from a quoted range: what a list shows of a note, what finds it again.

It knows nothing about why the range was chosen.
"""

from __future__ import annotations

import re
from collections import Counter

from memory.llm.extractive import cues
from memory.llm.extractive.pieces import plain
from memory.text.words import meaningful, terms

#: Longest title; the write gate refuses a longer one.
TITLE_CHARS_MAX = 80
KEYWORDS_MAX = 6
#: A title is not cut at a clause border before this many characters.
TITLE_CLAUSE_CHARS_MIN = 24
#: Meaningful words from which the lead-in of a list is a title by itself.
LEAD_MEANINGFUL_MIN = 4

#: Words that no one searches for, beyond the stop words.
SAYS_LITTLE = frozenset(
    """
    because since instead always never before after without only with between every must want wants
    need needs make makes used uses using actually really already still answers under about while
    until unless decided dont cant wont going there then through would weil immer niemals statt
    anstatt muss entschieden nicht kein keine
    """.split()  # noqa: SIM905 a list of words is easier to read and to sort like this
)

CLAUSE = re.compile(
    r"[;:,，；：。]\s?|\s[–—-]\s|\s\(|[.!](?=\s[A-Z`])"
    r"|\s(?:because|since|so that|but|which|weil|damit|aber)\s|因为|所以|但"
)
#: A refusal before the sentence that says what is so; "no tabs, please" is none.
NO = re.compile(
    r"^(?:(?:so|oh|ah|hm+)[,. ]+)*(?:no|nope|nah|nein)(?: wait)?[,.!]\s+(?=\S)", re.IGNORECASE
)
DANGLING = re.compile(
    r"(?:[\s,;:，；：(\[–—-]|\b(?:a|an|the|of|to|and|or|after|before|into|based"
    r"|if|when|with|that|which|for|in|on|is|are|by|as|from|so|but|der|die|das|und|mit|zu)"
    r"\s{0,8}$){1,40}$",
    re.IGNORECASE,
)


def title_of(text: str) -> str:
    """Return a title of at most TITLE_CHARS_MAX characters: the first clause that says enough."""
    head, _, rest = text.partition("\n")
    if rest and meaningful(head) < LEAD_MEANINGFUL_MIN and head.rstrip().endswith((":", "：")):
        head = "; ".join(plain(line).rstrip(".;") for line in rest.split("\n") if line.strip())
    elif rest and not head.rstrip().endswith((":", "：")):
        head = "; ".join(plain(part) for part in text.split("\n") if part.strip())
    line = plain(head)
    line = cues.OPENER.sub("", NO.sub("", line)) or line
    first = line.split(" ", 1)[0]
    if first.isalpha() and first.islower():
        line = line[0].upper() + line[1:]
    if len(line) > TITLE_CHARS_MAX:
        ends = [m.start() for m in CLAUSE.finditer(line, TITLE_CLAUSE_CHARS_MIN, TITLE_CHARS_MAX)]
        ends = [end for end in ends if line.count("(", 0, end) == line.count(")", 0, end)]
        if ends:
            line = line[: ends[-1]]
    title = clip(line, TITLE_CHARS_MAX)
    opened = title.rfind("(")
    if title.count("(") > title.count(")") and opened >= TITLE_CLAUSE_CHARS_MIN // 2:
        title = clip(title[:opened], TITLE_CHARS_MAX)
    return title


def clip(text: str, limit: int) -> str:
    """Cut on a word border, without a dangling article, conjunction or sign at the end."""
    text = " ".join(text.split())
    if len(text) > limit:
        cutoff = text[: limit + 1]
        border = cutoff.rfind(" ")
        text = DANGLING.sub("", cutoff[:border] if border > limit // 3 else text[:limit])
    return text.rstrip(" .:;,?，。；：？").strip()


def keywords_of(text: str, spread: Counter[str]) -> tuple[str, ...]:
    """Return names that can be searched for exactly first, then the rarest words of the unit."""
    exact = [m.group().strip("`.,") for m in cues.EXACT.finditer(text)]
    rare = [term for term in terms(text) if len(term) > 3 and term not in SAYS_LITTLE]
    rare.sort(key=lambda term: spread[term])
    found: dict[str, str] = {}
    for word in [*exact, *rare]:
        if 1 < len(word) <= 60 and not any(word.lower() in seen for seen in found):
            found[word.lower()] = word
    return tuple(list(found.values())[:KEYWORDS_MAX])
