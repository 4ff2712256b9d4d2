"""Questions made by rule from the principal's own notes; the answer is the note or its evidence.

Three kinds: `identifier` asks for a path, symbol, version or code that few notes hold; `keyword` is
the three rarest words of a note; `cloze` is the note without its rarest words. Made from the notes'
own words, so they are easier than what people ask: compare them between two states of one memory.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.llm.choice import embedder
from memory.models import Evidence, Note, Principal, RawItem, TurnVector
from memory.text.stem import stem
from memory.text.words import terms
from recall.evaluation.baselines import Shelf, Text
from recall.evaluation.dataset import Question
from recall.evaluation.ground import Ground, note_key, raw_key

#: The one pool: all that the principal sees, of every project.
POOL = ""

#: Notes that questions are made of, at most; a sample by id when there are more.
# Why: two hundred give each kind some hundred questions, enough for two digits.
NOTES_ASKED_MAX = 200

#: Texts that the baselines hold in memory; the latest when there are more.
TEXTS_MAX = 50_000

#: Notes that may share an identifier that is asked for; with more it names none of them.
SHARED_BY_MAX = 3

#: Words of a keyword question, words of a note worth asking, and the share that a cloze keeps out.
KEYWORDS, WORDS_MIN, CLOZE_SHARE = 3, 6, 0.3

#: What has a digit, or a sign or a capital inside: no ordinary word.
_IDENTIFIER = re.compile(r"[A-Za-z0-9][\w./:+#-]*[\w+#]")
_SPECIAL = re.compile(r"[._/:#+-]|\d|[a-z][A-Z]")


@dataclass(frozen=True)
class Known:
    """A live note as the rules read it: what it says, and the raw items that bear it out."""

    key: str
    content: str
    names: frozenset[str]
    sort: str


def questions(notes: Sequence[Known]) -> list[Question]:
    """Questions about these notes, the same ones each time. Pure.

    A note that says the same as another one is answered by either.
    """
    holding: dict[str, set[str]] = defaultdict(set)
    same: dict[str, set[str]] = defaultdict(set)
    for one in notes:
        same[one.content] |= one.names
        for term in set(map(stem, terms(one.content))):
            holding[term].add(one.key)
    rarity = {term: math.log(1 + len(notes) / len(keys)) for term, keys in holding.items()}
    chosen = sorted(notes, key=lambda one: hashlib.sha256(one.key.encode()).digest())
    made: list[Question] = []
    for one in chosen[:NOTES_ASKED_MAX]:
        fact = frozenset(same[one.content])
        for category, text in _asked(one, rarity, len(notes)):
            made.append(Question(POOL, text, (fact,), category, one.sort))
    return made


def _asked(one: Known, rarity: Mapping[str, float], count: int) -> Iterator[tuple[str, str]]:
    """(category, question) for each rule that fits the note."""
    enough = math.log(1 + count / SHARED_BY_MAX)
    for identifier in dict.fromkeys(_IDENTIFIER.findall(one.content)):
        known = [rarity.get(stem(term), 0.0) for term in terms(identifier)]
        if _SPECIAL.search(identifier) and known and known[0] >= enough:
            yield "identifier", f"What do we know about {identifier}?"
            break
    said = [word for word in re.findall(r"[^\W_]{2,}", one.content) if terms(word)]
    weigh = {word: max(rarity.get(stem(term), 0.0) for term in terms(word)) for word in said}
    rarest = sorted(weigh, key=lambda word: (-weigh[word], word))
    if len(rarest) < WORDS_MIN:
        return
    kept = set(rarest[:KEYWORDS])
    yield "keyword", " ".join(word for word in dict.fromkeys(said) if word in kept)
    hidden = set(rarest[: math.ceil(len(rarest) * CLOZE_SHARE)])
    yield (
        "cloze",
        re.sub(
            r"\s+",
            " ",
            re.sub(r"[^\W_]{2,}", lambda m: "" if m[0] in hidden else m[0], one.content),
        ).strip(),
    )


def read(principal: Principal, *, now: datetime) -> list[Known]:
    """The live notes that the principal sees, with their evidence."""
    live = Note.objects.visible_to(principal).live(now)
    rows = list(live.order_by("pk").values_list("pk", "content", "level"))
    items: dict[object, set[str]] = defaultdict(set)
    edges = Evidence.objects.filter(note__in=live.values("pk")).exclude(raw_item=None)
    for note, item in edges.values_list("note", "raw_item"):
        items[note].add(raw_key(item))
    kinds = _kinds(principal)
    made = []
    for pk, content, level in rows:
        sorts = Counter(kinds.get(key, "") for key in items[pk])
        sort = (
            "synthesis" if level == "L2" else next(iter(sorted(sorts, key=sorts.__getitem__)), "")
        )
        made.append(Known(note_key(pk), content, frozenset({note_key(pk), *items[pk]}), sort))
    return made


def lay(principal: Principal, known: Sequence[Known], *, now: datetime) -> Ground:
    """What there is to find: the live notes and the raw items, with the vectors they have."""
    model = embedder().name
    live = Note.objects.visible_to(principal).live(now)
    names = {one.key: one.names for one in known}
    sorts = {one.key: one.sort for one in known}
    texts = [
        Text(
            note_key(pk), f"{title}\n{content}", at, sorts.get(note_key(pk), "note"),
            tuple(vector) if vector is not None and by == model else (),
        )
        for pk, title, content, at, vector, by in live.order_by("-valid_from").values_list(
            "pk", "title", "content", "valid_from", "embedding", "embedding_model"
        )[:TEXTS_MAX]
    ]  # fmt: skip
    items = RawItem.objects.visible_to(principal).order_by("-occurred_at")
    rows = list(items.values_list("pk", "body", "occurred_at", "kind", "source")[:TEXTS_MAX])
    found = TurnVector.objects.filter(model=model, raw_item__in=[row[0] for row in rows])
    vectors = dict(found.values_list("raw_item", "embedding"))
    for pk, body, at, kind, source in rows:
        vector = vectors.get(pk)
        given = () if vector is None else tuple(vector)
        texts.append(Text(raw_key(pk), body, at, _sort(kind, source), given))
    stands_for = {text.key: names.get(text.key, frozenset({text.key})) for text in texts}
    counts = {"items": len(rows), "refused": 0, "notes": len(texts) - len(rows)}
    return Ground({POOL: Shelf(texts)}, stands_for, counts, now)


def _kinds(principal: Principal) -> dict[str, str]:
    rows = RawItem.objects.visible_to(principal).values_list("pk", "kind", "source")
    return {raw_key(pk): _sort(kind, source) for pk, kind, source in rows}


def _sort(kind: str, source: str) -> str:
    return "bookmark" if source == "bookmark" else kind
