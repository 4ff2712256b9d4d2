"""Who answers in a rebuild: the local adapters, and for models the log of their replies.

Nobody is asked. Which model answered for a unit then is told by the rows as they were, whatever the
settings say today. Reads: model_reply, and what the played one hands in. Knows no order of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from django.conf import settings

from memory.errors import ContentError
from memory.llm import choice
from memory.llm.kept import NotKept, replies_of
from memory.llm.ports import (
    Candidate,
    Check,
    Distiller,
    Draft,
    Embedder,
    Judge,
    Judgement,
    Origin,
    Passage,
    Statement,
    Usage,
    Verdict,
    Verifier,
)
from memory.llm.remote.endpoints import Endpoint
from memory.llm.remote.replies import read_candidates

#: How the versions of prompts begin that go to a URL.
# Why: the client of those takes a second to import, and most houses never need it.
PROMPTS = "distill-"

#: Where a model would be served that is not asked.
NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Asked:
    """A model, and the version of the prompt that it got."""

    model: str
    prompt_version: str


@dataclass(frozen=True)
class Said:
    """What a judge said then, as the verdict keeps it."""

    judgement: Judgement
    usage: Usage


class Recorded(choice.Configured):
    """The ports of one event. `distilled` and `judged` say who answered then; None: whoever is
    local. `embedder_name` is whose vectors are compared."""

    def __init__(
        self,
        *,
        distilled: Asked | None = None,
        verified: bool = False,
        judged: Said | None = None,
        embedder_name: str = "",
    ) -> None:
        self._distilled = distilled
        self._verified = verified
        self._judged = judged
        self._embedder_name = embedder_name

    def distiller(self, _: str) -> Distiller:
        asked, local = self._distilled, choice.local_distiller()
        return local if asked is None or asked.model == local.name else LoggedDistiller(asked)

    def judge(self, _: str) -> Judge:
        said, local = self._judged, choice.local_judge()
        if said is None or said.usage.model_asked in (local.name, "none", "exact"):
            return local
        usage = said.usage
        return LoggedJudge(Asked(usage.model_asked, usage.prompt_version), said)

    def verifier(self, _: str) -> Verifier | None:
        asked = self._distilled
        return LoggedVerifier(asked.model) if asked and self._verified else None

    def embedder(self) -> Embedder:
        return NoEmbedder(self._embedder_name or choice.embedder_name())


class LoggedDistiller:
    """A model's proposals for a unit, from the log."""

    def __init__(self, asked: Asked) -> None:
        self.name = asked.model
        self.prompt_version = asked.prompt_version

    def distill(self, passages: Sequence[Passage], *, origin: Origin) -> Draft:
        """By the question as it would be asked today; where that finds nothing, by the unit, if the
        log has exactly one reply to it. Raises NotKept."""
        try:
            return self._asked_today(passages, origin)
        except NotKept:
            pass
        replies = replies_of(
            origin.unit, port="distill", model=self.name, prompt_version=self.prompt_version
        )
        if len(replies) != 1:
            raise NotKept
        candidates: tuple[Candidate, ...] = tuple(read_candidates(replies[0].reply))
        usage = Usage(self.name, replies[0].model_real, self.prompt_version)
        return Draft(candidates, usage, replies[0].reply)

    def _asked_today(self, passages: Sequence[Passage], origin: Origin) -> Draft:
        if not self.prompt_version.startswith(PROMPTS):
            raise NotKept
        from memory.llm.remote.distill import PROMPT_VERSION, OpenAIDistiller

        if self.prompt_version != PROMPT_VERSION:
            raise NotKept
        return OpenAIDistiller(_nowhere(self.name)).distill(passages, origin=origin)


class LoggedJudge:
    """A model's judgement of a note, from the log; where the question is another one now, as the
    verdict has it."""

    def __init__(self, asked: Asked, said: Said | None = None) -> None:
        from memory.llm.remote.judge import CANDIDATES_MAX

        self.name = asked.model
        self.prompt_version = asked.prompt_version
        self.candidates_max = CANDIDATES_MAX
        self._said = said

    def judge(
        self, new: Statement, older: Sequence[Statement], *, origin: Origin
    ) -> tuple[Judgement, Usage]:
        """Raises NotKept where neither has it."""
        from memory.llm.remote.judge import PROMPT_VERSION, OpenAIJudge

        if self.prompt_version == PROMPT_VERSION:
            try:
                return OpenAIJudge(_nowhere(self.name)).judge(new, older, origin=origin)
            except NotKept:
                pass
        if self._said is None:
            raise NotKept
        return self._said.judgement, self._said.usage


class LoggedVerifier:
    """A model's answers about a candidate, from the log."""

    prompt_version = ""

    def __init__(self, model: str) -> None:
        self.name = model

    def verify(self, candidate: Candidate, evidence: str, *, origin: Origin) -> Check:
        """Raises ContentError for what is not in the log: only what could be read was kept."""
        from memory.llm.remote.verify import OpenAIVerifier

        try:
            return OpenAIVerifier(_nowhere(self.name)).verify(candidate, evidence, origin=origin)
        except NotKept as error:
            raise ContentError(str(error)) from None


class NoEmbedder:
    """Vectors are brought over as they were; who has none gets none here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str], *, origin: Origin) -> list[list[float]]:
        raise NotKept

    def embed_query(self, text: str, *, origin: Origin) -> list[float]:
        raise NotKept


def said_by(
    verdict: str,
    target: str | None,
    reasoning: str,
    *,
    model_asked: str,
    model_real: str,
    prompt_version: str,
) -> Said:
    """What a verdict's row tells of its judge."""
    known: dict[str, Verdict] = {one: one for one in get_args(Verdict)}
    judgement = Judgement(known[verdict], target, reasoning)
    return Said(judgement, Usage(model_asked, model_real, prompt_version))


def _nowhere(model: str) -> Endpoint:
    return Endpoint("chat", settings.ARGUS.model_url or NOWHERE, model)
