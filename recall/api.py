"""The HTTP doors of recall: parse once, call one verb, answer its result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from pydantic import AfterValidator, Field, TypeAdapter
from rest_framework.decorators import api_view, parser_classes, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from memory.acts import REASON_CHARACTERS_MAX, through
from memory.attribution import NAME_CHARACTERS_MAX
from memory.auth import caller, needs
from memory.doors import CappedJSONParser, body, described, parse
from memory.intake import ITEM_BYTES_MAX
from recall.block import BLOCK_CHARACTERS_MAX
from recall.budget import ANSWER_CHARACTERS, ANSWER_CHARACTERS_MAX, ANSWER_CHARACTERS_MIN
from recall.context import CONTEXT_NOTES_ASKED_MAX, CONTEXT_NOTES_MAX, recall_context
from recall.feedback import give_feedback
from recall.floors import SOURCES
from recall.notes import NOTES_ASKED_MAX, NOTES_MAX, Wanted, recall_notes
from recall.opened import read_note, read_turn
from recall.query import LIMIT, LIMIT_MAX, QUERY_CHARACTERS_MAX, recall_query
from recall.search import Past
from recall.skipped import SKIPPED_MAX, Skipped, note_skipped
from recall.where import Facts

#: Characters of a session's name and of a path.
# Why: the ledger's index holds the session, and an index row of Postgres ends at 2,700 bytes; a
# path ends at 4,096 on Linux.
SESSION_CHARACTERS_MAX = 512
PATH_CHARACTERS_MAX = 4_096

#: Milliseconds that a recall may be said to have taken.
DAY_MILLISECONDS = 24 * 3_600 * 1_000

Name = Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)]
Session = Annotated[str, Field(max_length=SESSION_CHARACTERS_MAX)]
Folder = Annotated[str, Field(max_length=PATH_CHARACTERS_MAX)]
Budget = Annotated[int, Field(ge=ANSWER_CHARACTERS_MIN, le=ANSWER_CHARACTERS_MAX)]


def _question(text: str) -> str:
    # Not a constraint of the field: that refuses half a surrogate pair, which is cleaned later.
    if not text.strip() or len(text) > QUERY_CHARACTERS_MAX:
        raise ValueError(f"from 1 to {QUERY_CHARACTERS_MAX} characters, not all blank")
    return text


Question = Annotated[str, AfterValidator(_question)]
#: An instant; one without a zone is meant in UTC.
Moment = Annotated[datetime, AfterValidator(lambda at: at if at.tzinfo else at.replace(tzinfo=UTC))]


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Where it is asked: `git_root` and `git_common_dir` name the repository as capture's metadata
    do, `here` is the project that the asker is in, whatever its folder is called."""

    cwd: Folder = ""
    session: Session = ""
    here: Name = ""
    git_root: Folder = ""
    git_common_dir: Folder = ""

    @property
    def facts(self) -> Facts:
        return Facts(self.git_root, self.git_common_dir, self.here)


@dataclass(frozen=True, kw_only=True)
class Prompt(Asker):
    """A prompt to recall for; `floor` may raise the server's, and lower it with scope operate.

    `project` leaves out what is not of it; `as_of` and `known_at` ask about the past.
    """

    query: str
    floor: Annotated[float, Field(ge=0, le=10)] | None = None
    project: Name = ""
    notes: Annotated[int, Field(ge=1, le=NOTES_ASKED_MAX)] = NOTES_MAX
    characters: Annotated[int, Field(ge=ANSWER_CHARACTERS_MIN, le=BLOCK_CHARACTERS_MAX)] = (
        BLOCK_CHARACTERS_MAX
    )
    as_of: Moment | None = None
    known_at: Moment | None = None
    explain: bool = False


@dataclass(frozen=True, kw_only=True)
class Query(Asker):
    """A question asked on purpose: both sources (or the one that `sources` names), no gate."""

    query: Question
    project: Name = ""
    sources: Literal["all", "note", "turn"] = "all"
    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = LIMIT
    characters: Budget = ANSWER_CHARACTERS
    as_of: Moment | None = None
    known_at: Moment | None = None
    explain: bool = False


@dataclass(frozen=True, kw_only=True)
class Place(Asker):
    """Where a session starts, and how much to tell of which time."""

    notes: Annotated[int, Field(ge=1, le=CONTEXT_NOTES_ASKED_MAX)] = CONTEXT_NOTES_MAX
    characters: Annotated[int, Field(ge=ANSWER_CHARACTERS_MIN, le=BLOCK_CHARACTERS_MAX)] = (
        BLOCK_CHARACTERS_MAX
    )
    as_of: Moment | None = None
    known_at: Moment | None = None


@dataclass(frozen=True)
class Opening:
    """How much of a note to show, and as of when; `expand` names links, with commas between.
    `session` and `cwd` are where it is read."""

    session: Session = ""
    cwd: Folder = ""
    expand: str = ""
    characters: Budget = ANSWER_CHARACTERS
    as_of: Moment | None = None
    known_at: Moment | None = None


@dataclass(frozen=True)
class Page:
    """How much of a turn to show, and from which of its characters on; where it is read."""

    session: Session = ""
    cwd: Folder = ""
    characters: Budget = ANSWER_CHARACTERS
    offset: Annotated[int, Field(ge=0, le=ITEM_BYTES_MAX)] = 0


@dataclass(frozen=True)
class Word:
    """What somebody says of a note: in a project (by name or by folder), or everywhere."""

    verdict: Literal["useful", "wrong", "outdated", "never", "withdrawn"]
    project: Name = ""
    cwd: Folder = ""
    injection: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    reason: Annotated[str, Field(max_length=REASON_CHARACTERS_MAX)] = ""


@dataclass(frozen=True)
class Missed:
    """A recall that a client gave up: the server was away, or slow. The prompt is not told."""

    id: UUID
    mode: Literal["prompt", "context"]
    at: Moment | None = None
    session: Session = ""
    cwd: Folder = ""
    client: str = ""
    machine: str = ""
    reason: str = ""
    milliseconds: Annotated[int, Field(ge=0, le=DAY_MILLISECONDS)] = 0


@dataclass(frozen=True)
class Journal:
    """What a client gave up since it last told of it."""

    skipped: Annotated[list[Missed], Field(max_length=SKIPPED_MAX)]


PROMPT = TypeAdapter(Prompt)
QUERY = TypeAdapter(Query)
PLACE = TypeAdapter(Place)
OPENING = TypeAdapter(Opening)
PAGE = TypeAdapter(Page)
WORD = TypeAdapter(Word)
JOURNAL = TypeAdapter(Journal)

#: Recalled text is one person's and of this moment.
HEADERS = {"Cache-Control": "private, no-store"}


@described("recall_notes_post", methods=("POST",), body=PROMPT)
@described("recall_notes", methods=("GET",), query=PROMPT)
@api_view(["POST", "GET"])
@permission_classes([needs("recall")])
@parser_classes([CappedJSONParser])
def notes_for_prompt(request: Request) -> Response:
    """Notes for a prompt, or silence, with the reason for either."""
    given = body(request) if request.method == "POST" else request.query_params.dict()
    prompt = parse(PROMPT, given)
    now = timezone.now()
    recalled = recall_notes(
        prompt.query,
        principal=caller(request)[0],
        session=prompt.session,
        cwd=prompt.cwd,
        facts=prompt.facts,
        wanted=Wanted(
            notes=prompt.notes,
            characters=prompt.characters,
            floor=allowed_floor(request, prompt.floor),
            project=prompt.project,
            past=Past.asked(as_of=prompt.as_of, known_at=prompt.known_at, now=now),
        ),
        now=now,
    )
    return Response(recalled.as_json(explain=prompt.explain), headers=HEADERS)


@described("recall_query_post", methods=("POST",), body=QUERY)
@described("recall_query", methods=("GET",), query=QUERY)
@api_view(["POST", "GET"])
@permission_classes([needs("recall")])
@parser_classes([CappedJSONParser])
def query(request: Request) -> Response:
    """Notes and turns for a question, best first; floors are told, not enforced."""
    given = body(request) if request.method == "POST" else request.query_params.dict()
    asked = parse(QUERY, given)
    now = timezone.now()
    answered = recall_query(
        asked.query,
        principal=caller(request)[0],
        session=asked.session,
        cwd=asked.cwd,
        facts=asked.facts,
        project=asked.project,
        sources=SOURCES if asked.sources == "all" else (asked.sources,),
        limit=asked.limit,
        characters=asked.characters,
        past=Past.asked(as_of=asked.as_of, known_at=asked.known_at, now=now),
        now=now,
    )
    return Response(answered.as_json(explain=asked.explain), headers=HEADERS)


def allowed_floor(request: Request, floor: float | None) -> float | None:
    """The floor that is asked for; below the server's only with the scope operate."""
    if floor is None or "operate" in caller(request)[1].scopes:
        return floor
    return max(floor, settings.ARGUS.recall_floor)


@described("recall_context", methods=("GET",), query=PLACE)
@api_view(["GET"])
@permission_classes([needs("recall")])
def context_for_session(request: Request) -> Response:
    """The notes a session should know from its start."""
    place = parse(PLACE, request.query_params.dict())
    now = timezone.now()
    context = recall_context(
        principal=caller(request)[0],
        session=place.session,
        cwd=place.cwd,
        facts=place.facts,
        most=place.notes,
        characters=place.characters,
        past=Past.asked(as_of=place.as_of, known_at=place.known_at, now=now),
        now=now,
    )
    return Response(context.as_json(), headers=HEADERS)


@described("recall_note", methods=("GET",), query=OPENING)
@api_view(["GET"])
@permission_classes([needs("recall")])
def note_by_id(request: Request, note_id: UUID) -> Response:
    """One note with its evidence and, when asked for, its links; somebody else's answers 404, and
    so does one that was silenced here."""
    how = parse(OPENING, request.query_params.dict())
    now = timezone.now()
    opened = read_note(
        note_id,
        principal=caller(request)[0],
        session=how.session,
        cwd=how.cwd,
        expand=[name.strip() for name in how.expand.split(",") if name.strip()],
        characters=how.characters,
        past=Past.asked(as_of=how.as_of, known_at=how.known_at, now=now),
        now=now,
    )
    return Response(opened, headers=HEADERS)


@described("recall_note_feedback", methods=("POST",), body=WORD)
@api_view(["POST"])
@permission_classes([needs("recall")])
@parser_classes([CappedJSONParser])
def feedback_on_note(request: Request, note_id: UUID) -> Response:
    """Say of a note whether it helped; `never` silences it at once, for who says so."""
    word = parse(WORD, body(request))
    owner, key = caller(request)
    with through("api", key):
        said = give_feedback(
            note_id,
            word.verdict,
            principal=owner,
            project=word.project or None,
            cwd=word.cwd,
            injection=word.injection,
            reason=word.reason,
            now=timezone.now(),
        )
    return Response(said.as_json(), status=201 if said.fresh else 200, headers=HEADERS)


@described("recall_turn", methods=("GET",), query=PAGE)
@api_view(["GET"])
@permission_classes([needs("recall")])
def turn_by_id(request: Request, turn_id: int) -> Response:
    """One raw item with what was said around it; somebody else's answers 404, and so does one that
    bears out a note that was silenced here."""
    page = parse(PAGE, request.query_params.dict())
    opened = read_turn(
        turn_id,
        principal=caller(request)[0],
        session=page.session,
        cwd=page.cwd,
        characters=page.characters,
        offset=page.offset,
        now=timezone.now(),
    )
    return Response(opened, headers=HEADERS)


@described("recall_skipped", methods=("POST",), body=JOURNAL)
@api_view(["POST"])
@permission_classes([needs("recall")])
@parser_classes([CappedJSONParser])
def skipped(request: Request) -> Response:
    """Note the recalls that never reached the server, each once."""
    told = [Skipped(**vars(one)) for one in parse(JOURNAL, body(request)).skipped]
    noted = note_skipped(told, principal=caller(request)[0], now=timezone.now())
    return Response(asdict(noted), headers=HEADERS)
