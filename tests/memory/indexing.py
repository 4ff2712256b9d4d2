"""Notes that are not indexed yet, what the lexical track finds, and statistics counted anew."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import numpy as np

from memory.lexical import hashed, query_terms
from memory.models import (
    Collection,
    Note,
    Posting,
    Principal,
    SearchText,
    Term,
)
from memory.searchtexts import index_all
from memory.tracks import asked, heaviest, notes_of
from tests.factories import EMBED_MODEL, T0
from tests.hashing_embedder import vector_of


def made(owner: Principal, content: str, **fields: Any) -> Note:
    """A live note as distill and embed leave it, not indexed yet."""
    given: dict[str, Any] = {
        "id": uuid.uuid4(),
        "owner": owner,
        "title": "",
        "content": content,
        "unit_key": "made",
        "content_key": content[:80],
        "embedding": vector_of(content),
        "embedding_model": EMBED_MODEL,
        "valid_from": T0,
        "created_at": T0,
    }
    return Note.objects.create(**given | fields)


def indexed() -> int:
    return index_all(over=lambda: False)


def by_words(owner: Principal, text: str, **options: Any) -> list[Note]:
    """The notes that the lexical track finds, best first."""
    terms = [hashed(term) for term in query_terms(text)]
    mine = {False: asked(owner, terms)[False]}
    found = [text for text, _ in heaviest(owner, mine, depth=50, **options)[False]]
    keys = notes_of(found)
    rows = Note.objects.as_pipeline().in_bulk(list(keys.values()))
    return [rows[keys[text]] for text in found]


def kept() -> tuple[dict[Any, Any], dict[Any, int]]:
    """The statistics as they are kept: collections, and terms that some text holds."""
    collections = {
        (row.owner_id, row.raw): (row.texts, row.length)
        for row in Collection.objects.all()
        if row.texts or row.length
    }
    terms = {(row.owner_id, row.raw, row.term): row.texts for row in Term.objects.all()}
    return collections, {key: texts for key, texts in terms.items() if texts}


def recount() -> tuple[dict[Any, Any], dict[Any, int]]:
    """The same, counted from the texts that are there: of notes those that live, and none that has
    no word, which no question can find."""
    collections: dict[Any, Any] = {}
    holding: Counter[Any] = Counter()
    living = set(Note.objects.as_pipeline().filter(deleted_at__isnull=True).values_list("pk"))
    for row in SearchText.objects.as_pipeline():
        if not row.length or (not row.raw and (row.note_id,) not in living):
            continue
        key = (row.owner_id, row.raw)
        texts, length = collections.get(key, (0, 0))
        collections[key] = (texts + 1, length + row.length)
        names = np.frombuffer(bytes(row.terms), dtype="<i8")
        counts = np.frombuffer(bytes(row.counts), dtype="<u2")
        holding.update((*key, int(name)) for name in names[counts > 0])
    return collections, dict(holding)


def postings_are_those_of_the_texts() -> None:
    rows = Posting.objects.as_pipeline().values_list("text_id", "term")
    expected = set()
    for text in SearchText.objects.as_pipeline():
        names = np.frombuffer(bytes(text.terms), dtype="<i8")
        counts = np.frombuffer(bytes(text.counts), dtype="<u2")
        expected |= {(text.pk, int(name)) for name in names[counts > 0]}
    assert set(rows) == expected
