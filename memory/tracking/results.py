"""Proof that is quoted, not told: the last line of a test run, and the id of a commit.

Pure. Reads the shapes that test runners and git print (pytest, unittest, jest, vitest, mocha,
RSpec, cargo, go). "All tests pass" is no proof but a claim: `memory.tracking.cues` has those.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from memory.tracking.phrases import DOUBT, EXPECTED, HALF

#: (what it shows, what it looks like); of two that begin at one place the first counts.
_RESULTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.MULTILINE))
    for kind, pattern in (
        # pytest: 2 failed, 10 passed in 3.21s
        ("test_failed", r"\b[1-9]\d* (?:failed|errors?)(?:, \d+ \w+){0,6} in \d[\d.]*s\b"),
        ("test_passed", r"\b[1-9]\d* passed(?:, \d+ (?!failed|error)\w+){0,6} in \d[\d.]*s\b"),
        ("test_failed", r"^FAILED [\w./\\-]+::[^\n]{1,200}"),
        # unittest
        ("test_failed", r"^FAILED \((?:failures|errors)=\d+[^)\n]{0,80}\)"),
        ("test_passed", r"^Ran [1-9]\d* tests? in \d[\d.]*s\s{1,4}OK\b"),
        # jest and vitest: Tests: 1 failed, 3 passed, 4 total
        ("test_failed", r"\bTests:?\s+[1-9]\d* failed\b[^\n]{0,80}"),
        ("test_passed", r"\bTests:?\s+(?:\d+ skipped, )?[1-9]\d* passed(?:, \d+ total| \(\d+\))"),
        # mocha, RSpec
        ("test_failed", r"^\s{0,8}[1-9]\d* failing\b"),
        ("test_passed", r"^\s{0,8}[1-9]\d* passing \(\d[^)\n]{0,12}\)(?!\s+\d+ failing)"),
        ("test_failed", r"\b\d+ examples?, [1-9]\d* failures?\b"),
        ("test_passed", r"\b[1-9]\d* examples?, 0 failures\b"),
        # cargo, go
        ("test_failed", r"\btest result: FAILED\.[^\n]{0,120}"),
        ("test_passed", r"\btest result: ok\. [1-9]\d* passed; 0 failed\b"),
        ("test_failed", r"^--- FAIL: [^\n]{1,120}"),
        ("test_passed", r"^ok\s+[\w./-]*[./][\w./-]+\s+\d[\d.]*s\b"),
        # Any program that was run.
        ("test_failed", r"^\W{0,4}(?:[Ee]xit(?:ed with)? (?:code|status)):? [1-9]\d{0,2}\b"),
        ("test_failed", r"\bexited with (?:exit )?(?:code|status) [1-9]\d{0,2}\b"),
    )
)

#: What a runner prints around its result: rules, colours, counts and times.
_RUNNERS = re.compile(
    r"\x1b\[[\d;]*m|\b\d+ (?:passed|failed|skipped|xfailed|xpassed|deselected|warnings?|errors?"
    r"|total|todo|pending|ignored|measured|filtered out|examples?)\b|\b\d[\d.:]*m?s?\b"
    r"|\b(?:finished )?in\b|\b(?:cached|coverage)\b|[\W_]"
)
_FENCE = re.compile(r"^[ \t>]{0,12}(?:`{3,}|~{3,})", re.MULTILINE)

#: Characters of a line around a result that are looked at; in a longer line it shows nothing.
# Why: runners print short lines, and people write them; the rest is a dump.
LINE_CHARACTERS_MAX = 600

#: Results of one line that are looked at.
RESULTS_A_LINE_MAX = 3

# Why a digit and a letter: "deadbee" is a word and "1234567" a number as often as an id.
_ID = r"(?P<id>(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40})\b"
#: What git prints: [main 1a2b3c4] Add retries
_GIT = re.compile(
    rf"^\W{{0,4}}\[[\w./-]{{1,80}}(?: \([\w-]+\))? {_ID}\][^\n]{{0,160}}", re.MULTILINE
)
_DID = "committed|pushed|merged|landed|fixed|done|implemented|added"
#: What somebody says of what they did: the beginning of a sentence, or "I", or "it was".
_SAID = re.compile(
    r"(?:^[^\w\n]{0,8}|(?<=[.!])\s+|\b(?:I|we)(?:['\u2019]ve| have)?\s+"
    r"|\b(?:ha(?:s|ve) been|(?:is|are) now|everything(?: is)?|changes?(?: are)?)\s+)"
    rf"(?:(?:now|also|just|already|then|\w+ly)\s+){{0,2}}(?P<did>{_DID})"
    rf"\b[^\n.!?]{{0,80}}?\b(?:as|in|commit|at|with)\s+(?:commit\s+)?[`(]{{0,2}}{_ID}",
    re.MULTILINE | re.IGNORECASE,
)
_STOP = re.compile(r"[.!?](?=\s|$)|\n|$")
_BEGIN = re.compile(r"[.!?]\s|\n")

#: What, about a commit, says that there is none.
_NO_COMMIT = re.compile(
    r"\b(?:not|never|no|nothing|none|nobody|no one|neither|nicht|nichts|kein\w*)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
#: What, behind it, says that it did not do.
_UNDONE = re.compile(
    r"\b(?:revert\w*|rolled back|backed out|broke\w*|breaks?|crash\w*|fail\w*|wrong\w*|caus\w+"
    r"|bugs?|by (?!me\b|us\b)|introduc\w+|but|however|except|instead|useless|badly)",
    re.IGNORECASE,
)


def results(text: str) -> Iterator[tuple[str, int, int, str]]:
    """Yield (test_passed, test_failed or commit; start; end; commit id or "") in no order.

    text[start:end] is what is quoted. Overlapping finds of one kind are given once. A result counts
    when its line is a runner's own, or nothing in the line doubts it, and when nothing that
    introduces it says that it is expected, hoped for or another's.
    """
    taken: list[tuple[int, int]] = []
    fences = [one.start() for one in _FENCE.finditer(text)]
    of_line: Counter[int] = Counter()
    for kind, pattern in _RESULTS:
        for found in pattern.finditer(text):
            if any(found.start() < end and start < found.end() for start, end in taken):
                continue
            # Taken, shown or not: of "2 failed, 10 passed" the half is no result.
            taken.append(found.span())
            line = text.rfind("\n", 0, found.start()) + 1
            of_line[line] += 1
            if of_line[line] > RESULTS_A_LINE_MAX:
                continue
            if _shown(text, found, line, fences, failed=kind == "test_failed"):
                yield kind, *found.span(), ""
    for pattern, meant in ((_GIT, _printed), (_SAID, _did)):
        for found in pattern.finditer(text):
            start = found.start() if pattern is _GIT else found.start("did")
            if any(start < end and begin < found.end() for begin, end in taken):
                continue
            if meant(text, found, fences):
                taken.append((start, found.end()))
                yield "commit", start, found.end(), found["id"]


def _shown(
    text: str, found: re.Match[str], start: int, fences: Sequence[int], *, failed: bool
) -> bool:
    """Whether the line that begins at `start` shows this result, and does not speak of it."""
    stop = text.find("\n", found.end())
    before, after = text[start : found.start()], text[found.end() : stop if stop >= 0 else None]
    if max(len(before), len(after)) > LINE_CHARACTERS_MAX:
        return False
    if EXPECTED.search(_introduction(text, start, fences)):
        return False
    if not _RUNNERS.sub("", before) and (failed or not _RUNNERS.sub("", after)):
        return True
    around = f"{_sentence_above(text, start)} {before} \u2026 {after}"
    if EXPECTED.search(around) or "?" in around:
        return False
    return failed or not (DOUBT.search(around) or HALF.search(around))


def _introduction(text: str, start: int, fences: Sequence[int]) -> str:
    """The line that leads to this one: above the fence it stands in, or above with a colon."""
    before = bisect_left(fences, start)
    fenced = before % 2 == 1
    stop = fences[before - 1] if fenced else start
    line = text[max(0, stop - LINE_CHARACTERS_MAX) : stop].rstrip().rpartition("\n")[2]
    return line if fenced or line.rstrip(" *_`").endswith(":") else ""


def _sentence_above(text: str, start: int) -> str:
    """The line right above, where its sentence goes on in this one."""
    line = text[max(0, start - LINE_CHARACTERS_MAX) : max(start - 1, 0)].rpartition("\n")[2]
    return "" if line.rstrip().endswith((".", "!", "?")) else line


def _printed(text: str, found: re.Match[str], fences: Sequence[int]) -> bool:
    start = text.rfind("\n", 0, found.start()) + 1
    return not EXPECTED.search(_introduction(text, start, fences))


def _did(text: str, found: re.Match[str], fences: Sequence[int]) -> bool:
    """Whether the sentence says that something was done, and in this commit."""
    least = max(0, found.start("did") - LINE_CHARACTERS_MAX)
    stops = _BEGIN.finditer(text, least, found.start("did"))
    begin = max((one.end() for one in stops), default=least)
    most = min(len(text), found.end("id") + LINE_CHARACTERS_MAX)
    stop = _STOP.search(text, found.end("id"), most)
    end = stop.start() if stop else most
    if text[end : end + 1] == "?" or EXPECTED.search(_introduction(text, begin, fences)):
        return False
    before, behind = text[begin : found.start("did")], text[found.end("id") : end]
    if DOUBT.search(before) or EXPECTED.search(before) or _UNDONE.search(behind):
        return False
    return not _NO_COMMIT.search(text, begin, end) and not EXPECTED.search(behind)
