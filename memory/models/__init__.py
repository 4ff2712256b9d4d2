"""The nouns. One table per thing that happened, so that every question has a row to ask."""

from memory.models.access import AccessKey, Group, Principal
from memory.models.episode import (
    Attribution,
    DistilledItem,
    Episode,
    EpisodeTurn,
    SegmentCheck,
    TurnVector,
)
from memory.models.note import (
    Decision,
    DedupVerdict,
    DistillFailure,
    Evidence,
    GateRejection,
    Injection,
    Note,
)
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

__all__ = [
    "AccessKey",
    "Attribution",
    "CaptureReceipt",
    "Centroid",
    "Claim",
    "Cooldown",
    "Decision",
    "DedupVerdict",
    "DistillFailure",
    "DistilledItem",
    "Emission",
    "Episode",
    "EpisodeTurn",
    "Evidence",
    "GateRejection",
    "Group",
    "Injection",
    "LlmCall",
    "ModelReply",
    "Note",
    "PathRule",
    "Principal",
    "Project",
    "ProjectAlias",
    "PurgeLedger",
    "RawItem",
    "SegmentCheck",
    "Session",
    "StageRun",
    "TokenDay",
    "TurnVector",
    "Centroid",
]
