"""The bodies of an OpenAI-compatible server as Reply: every field is looked at before it is used.

What is not an answer of such a server is Away; odd metadata is left out, never an error. Pure;
knows nothing about HTTP or about what is in the text of a reply.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, TypeGuard

from memory.errors import ContentError
from memory.llm.calls import Away, Reply
from memory.text.clean import clean_text

#: Digits up to which a whole number is read as one.
# Why: longer ones are refused by the reader of numbers or by arithmetic on vectors.
DIGITS_MAX = 18

#: Opening brackets and braces in one body, those in its texts too.
# Why: an empty list takes three bytes of a body and sixty of memory.
# Calibrate: far above the braces of the longest reply about code.
BRACKETS_MAX = 100_000

#: Least natural log-probability that is told from never.
# Why: servers write -9999, -1e38 or -Infinity for the same thing.
LOGPROB_MIN = -30.0


def read_chat(body: bytes, provider: str) -> Reply:
    """The first choice of a chat completion. Raises Away when there is none."""
    answer = _object(body, provider)
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    content = message.get("content") if isinstance(message, dict) else 0
    if not isinstance(first, dict) or not isinstance(message, dict) or not _is_text(content):
        raise Away(f"{provider} answered, but not as a chat endpoint does", "no_answer")
    return Reply(
        text=_text(content),
        refusal=_text(message.get("refusal")),
        finish_reason=_text(first.get("finish_reason")),
        model_real=_text(answer.get("model")),
        tokens_in=_count(answer, "prompt_tokens"),
        tokens_out=_count(answer, "completion_tokens"),
    )


def read_embeddings(body: bytes, provider: str) -> Reply:
    """The vectors of an embeddings answer by position; whether they are vectors is not looked at.

    Raises Away when it is no such answer, ContentError when it has no vectors or nobody can say to
    which text one belongs.
    """
    answer = _object(body, provider)
    data = answer.get("data")
    if not isinstance(data, list):
        raise Away(f"{provider} answered, but not as an embeddings one does", "no_answer")
    if not data:
        raise ContentError(f"{provider} sent no vectors")
    vectors: dict[int, object] = {}
    for place, entry in enumerate(data):
        if not isinstance(entry, dict):
            continue
        position = entry.get("index")
        # Servers that leave the index out keep the order.
        position = place if position is None else position
        if isinstance(position, bool) or not isinstance(position, int) or position in vectors:
            raise ContentError(f"{provider} gave vectors whose positions cannot be read")
        vectors[position] = entry.get("embedding")
    return Reply(
        vectors=vectors,
        model_real=_text(answer.get("model")),
        tokens_in=_count(answer, "prompt_tokens"),
        tokens_out=0,
    )


def read_ranking(body: bytes, provider: str) -> Reply:
    """The scores of a rerank answer by position; whether they are numbers is not looked at.

    Reads an object whose `results` (or `data`) are entries with `relevance_score`, and a bare list
    of entries with `score`. Raises Away when it is no such answer, ContentError when nobody can say
    to which text a score belongs: entries stand in the order of their scores.
    """
    answer = _json(body, provider)
    named = answer if isinstance(answer, dict) else {}
    entries = next((named[key] for key in ("results", "data") if key in named), answer)
    if not isinstance(entries, list):
        raise Away(f"{provider} answered, but not as a rerank endpoint does", "no_answer")
    scores: dict[int, object] = {}
    for entry in entries:
        position = entry.get("index") if isinstance(entry, dict) else None
        if isinstance(position, bool) or not isinstance(position, int) or position in scores:
            raise ContentError(f"{provider} gave scores whose positions cannot be read")
        scores[position] = entry.get("relevance_score", entry.get("score"))
    counted = _count(named, "prompt_tokens")
    return Reply(
        scores=scores,
        model_real=_text(named.get("model")),
        tokens_in=_count(named, "total_tokens") if counted is None else counted,
        tokens_out=0,
    )


def read_opening(body: bytes, provider: str) -> Reply:
    """A chat completion with the log-probabilities of its first tokens, likeliest first.

    Tokens whose numbers cannot be read are left out; no `openings` at all: the server gave none.
    """
    choices = _object(body, provider).get("choices")
    found = choices[0].get("logprobs") if _is_objects(choices) else None
    content = found.get("content") if isinstance(found, dict) else None
    places = content if _is_objects(content) else []
    openings = tuple(_likeliest(place.get("top_logprobs")) for place in places)
    return replace(read_chat(body, provider), openings=openings if all(openings) else ())


def _is_objects(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _likeliest(entries: object) -> dict[str, float]:
    found: dict[str, float] = {}
    for entry in entries if _is_objects(entries) else []:
        token, number = entry.get("token"), entry.get("logprob")
        if not isinstance(token, str) or isinstance(number, bool):
            continue
        # A token that cannot be drawn is written as a huge negative number, or as infinity.
        if isinstance(number, (int, float)) and number <= 0:
            found.setdefault(token, max(float(number), LOGPROB_MIN))
    return found


def _object(body: bytes, provider: str) -> dict[str, Any]:
    answer = _json(body, provider)
    if not isinstance(answer, dict):
        raise Away(f"{provider} answered, but not with an object", "no_answer")
    return answer


def _json(body: bytes, provider: str) -> object:
    if body.count(b"[") + body.count(b"{") > BRACKETS_MAX:
        raise Away(f"{provider} answered with over {BRACKETS_MAX} brackets", "no_answer")
    try:
        answer: object = json.loads(body, parse_int=_number)
    except (ValueError, RecursionError) as error:
        why = "" if isinstance(error, RecursionError) else f": {error}"
        raise Away(f"{provider} answered, but not with JSON{why}"[:300], "no_answer") from None
    return answer


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= DIGITS_MAX else float(digits)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _text(value: object) -> str:
    return clean_text(value)[0] if isinstance(value, str) else ""


def _count(answer: dict[str, Any], name: str) -> int | None:
    """Tokens by the server's count; None where it did not count."""
    usage = answer.get("usage")
    value = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if math.isfinite(value) and value >= 0 else None
