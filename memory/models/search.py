"""The search index: the terms of every note and raw item, and the statistics BM25 needs.

State, made from what it indexes and made again at any time. Postings fall with their search text,
and search texts with what they index, by the database itself.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memory.models.access import Principal
from memory.models.note import Note
from memory.models.record import Project, RawItem, Session
from memory.querysets import OwnedQuerySet


class SearchText(models.Model):
    """The search text of one note or one raw item: which terms it holds, how often, and where in
    its session it stands. Owner and visibility are those of the thing itself."""

    # The foreign keys cascade in the database (see 0004_search_guards): Django deletes neither.
    note = models.OneToOneField(
        Note, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="text"
    )
    raw_item = models.OneToOneField(
        RawItem, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="text"
    )
    raw = models.BooleanField()
    owner = models.ForeignKey(Principal, on_delete=models.PROTECT, db_index=False)
    visibility = models.TextField()
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT, db_index=False)
    # The session of a turn; two turns of it that follow each other are neighbours.
    place = models.ForeignKey(Session, null=True, on_delete=models.PROTECT, db_index=False)
    occurred_at = models.DateTimeField()
    # False while an open tail may still get its project from the episode it will belong to.
    settled = models.BooleanField(default=True)
    # What `memory.lexical.pack` makes: hashes of the terms, sorted (int64), and how often each
    # stands in the body and in the header (uint16).
    terms = models.BinaryField()
    counts = models.BinaryField()
    heads = models.BinaryField()
    # Terms of the body, repeats included.
    length = models.IntegerField()
    # What the ranker asks of a text (memory.lexical.TRAITS), a bit each.
    traits = models.IntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(raw=True, raw_item__isnull=False, note__isnull=True)
                | Q(raw=False, note__isnull=False, raw_item__isnull=True),
                name="search_text_of_one",
            ),
        ]
        indexes = [
            # Read by recall: the turns before and after a turn.
            models.Index(
                fields=["place", "occurred_at", "id"],
                condition=Q(place__isnull=False),
                name="search_text_place",
            ),
            # Read by recall: what of an owner, and of a time, there is.
            models.Index(fields=["owner", "raw", "occurred_at"], name="search_text_owner"),
            # Read by recall: what of a project there is, and what others let one see.
            models.Index(
                fields=["project", "owner"],
                condition=Q(project__isnull=False),
                name="search_text_project",
            ),
            models.Index(
                fields=["raw", "owner"],
                condition=~Q(visibility="private"),
                name="search_text_shared",
            ),
            # Read by embed: tails that have an episode by now.
            models.Index(fields=["id"], condition=Q(settled=False), name="search_text_tail"),
        ]

    def __str__(self) -> str:
        return f"search text of {self.raw_item_id if self.raw else self.note_id}"


class Posting(models.Model):
    """One term in one search text. The heaviest of a term are read first and the rest never."""

    # Id of the search text; not a foreign key of Django's, which cannot be a part of this key.
    pk = models.CompositePrimaryKey("text_id", "term")
    text_id = models.BigIntegerField()
    term = models.BigIntegerField()
    # The text's share of BM25 for this term but for idf, with the mean length of its time.
    weight = models.FloatField()
    raw = models.BooleanField()
    # False for a retired note: found only when somebody asks about the past.
    live = models.BooleanField(default=True)
    owner = models.ForeignKey(Principal, on_delete=models.PROTECT, db_index=False)
    visibility = models.TextField()
    project = models.ForeignKey(Project, null=True, on_delete=models.PROTECT, db_index=False)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        indexes = [
            # Read by the lexical track: the heaviest texts of a term, of one's own.
            models.Index(
                fields=["owner", "raw", "term", "-weight"],
                include=["text_id", "live", "project"],
                name="posting_own",
            ),
            # The same for what others let everybody see, and their team.
            models.Index(
                fields=["raw", "term", "-weight"],
                include=["text_id", "live", "project", "owner"],
                condition=Q(visibility="common"),
                name="posting_common",
            ),
            models.Index(
                fields=["owner", "raw", "term", "-weight"],
                include=["text_id", "live", "project"],
                condition=Q(visibility="team"),
                name="posting_team",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.term} in {self.text_id}"


class Term(models.Model):
    """How many live texts of an owner, of one source, hold a term."""

    owner = models.ForeignKey(Principal, on_delete=models.CASCADE, db_index=False)
    raw = models.BooleanField()
    term = models.BigIntegerField()
    texts = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "raw", "term"], name="term_once"),
        ]

    def __str__(self) -> str:
        return f"{self.term}: {self.texts}"


class Collection(models.Model):
    """How many live texts an owner has of one source, and how long they are together, in terms."""

    owner = models.ForeignKey(Principal, on_delete=models.CASCADE, db_index=False)
    raw = models.BooleanField()
    texts = models.BigIntegerField()
    length = models.BigIntegerField()
    # Terms of the names of who speaks in these texts: a question that names one means what it says.
    speakers = ArrayField(models.BigIntegerField(), default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "raw"], name="collection_once"),
        ]

    def __str__(self) -> str:
        return f"{self.texts} texts of {self.owner_id}"
