"""The nouns. One table per thing that happened, so that every question has a row to ask."""

from memory.models.access import AccessKey, Group, Principal
from memory.models.act import Act
from memory.models.episode import (
    Attribution,
    DistilledItem,
    Episode,
    EpisodeTurn,
    SegmentCheck,
    TurnVector,
)
from memory.models.finding import Finding, LedgerDay, PurgeProof
from memory.models.note import (
    Decision,
    DedupVerdict,
    DistillFailure,
    Evidence,
    Feedback,
    GateRejection,
    Injection,
    Note,
)
from memory.models.person import Pin, Proposal, RejectedFact, RejectionDecision
from memory.models.record import (
    CaptureReceipt,
    Centroid,
    Emission,
    PathRule,
    Project,
    ProjectAlias,
    RawItem,
    Session,
)
from memory.models.run import (
    Claim,
    Cooldown,
    LlmCall,
    ModelReply,
    PurgeLedger,
    StageRun,
    TokenDay,
)
from memory.models.search import Collection, Posting, SearchText, Term
from memory.models.task import TaskEvent, TaskItem
from memory.models.waiting import WaitingItem, WaitingNote

__all__ = [
    "AccessKey",
    "Act",
    "Attribution",
    "CaptureReceipt",
    "Centroid",
    "Claim",
    "Collection",
    "Cooldown",
    "Decision",
    "DedupVerdict",
    "DistillFailure",
    "DistilledItem",
    "Emission",
    "Episode",
    "EpisodeTurn",
    "Evidence",
    "Feedback",
    "Finding",
    "GateRejection",
    "Group",
    "Injection",
    "LedgerDay",
    "LlmCall",
    "ModelReply",
    "Note",
    "PathRule",
    "Pin",
    "Posting",
    "Principal",
    "Project",
    "ProjectAlias",
    "Proposal",
    "PurgeLedger",
    "PurgeProof",
    "RawItem",
    "RejectedFact",
    "RejectionDecision",
    "SearchText",
    "SegmentCheck",
    "Session",
    "StageRun",
    "TaskEvent",
    "TaskItem",
    "Term",
    "TokenDay",
    "TurnVector",
    "WaitingItem",
    "WaitingNote",
]
