"""Verbs as the rule judge knows them: which take one value at a time, which only tell, which tell
of a change.

English, German and Chinese, present tense. Tables only; a verb that is missing costs recall, never
precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory.llm.rules.vocabulary import row


@dataclass(frozen=True)
class Verb:
    """What may be a value of this verb: kinds as direct object, prepositions that lead to the
    value.
    """

    objects: frozenset[str]
    prepositions: frozenset[str] = frozenset()
    noun_first: bool = False


def _verb(objects: str = "", prepositions: str = "", noun_first: bool = False) -> Verb:
    return Verb(frozenset(objects.split()), frozenset(prepositions.split()), noun_first)


_PLACE = "in at on under to from by with"
#: Verbs of one value at a time. Objects: number, name (path, URL, identifier, command), mate (one
#: of a kind), proper,
#: role (a name, if the sentence goes on to say what for).
VERBS: Mapping[str, Verb] = {
    "be": _verb("number name mate proper state", "in at on under by from every after before for"),
    "use": _verb("number mate role"),
    "prefer": _verb("number mate"),
    "run": _verb("role rhythm", "on at to every in under with after before"),
    "listen": _verb("", "on at"),
    "bind": _verb("", "on to", True),
    "live": _verb("name number", "in at on under"),
    "store": _verb("", "in at under on", True),
    "save": _verb("", "in at under to", True),
    "keep": _verb("number", "in at under for", True),
    "write": _verb("", "in to with", True),
    "put": _verb("", "in under", True),
    "set": _verb("", "to at", True),
    "deploy": _verb("", "to on with from via", True),
    "host": _verb("", "on at with", True),
    "need": _verb("number"),
    "have": _verb("number"),
    "take": _verb("number"),
    "last": _verb("number", "for"),
    "wait": _verb("number", "for"),
    "sleep": _verb("number", "for"),
    "expire": _verb("", "after in"),
    "time": _verb("", "after"),
    "timeout": _verb("number", "after"),
    "point": _verb("", "to at"),
    "start": _verb("", "at on with"),
    "end": _verb("", "at on"),
    "happen": _verb("", "at every"),
    "belong": _verb("", "to"),
    "default": _verb("number", "to"),
    "allow": _verb("number"),
    "accept": _verb("number"),
    "hold": _verb("number"),
    "limit": _verb("number", "to at", True),
    "cap": _verb("number", "to at", True),
    "retry": _verb("number", "after every"),
    "cost": _verb("number"),
    "return": _verb("number"),
    "pin": _verb("", "to at", True),
    "format": _verb("", "with", True),
    "build": _verb("", "with in on", True),
    "test": _verb("", "with on", True),
    "manage": _verb("", "with by", True),
    "call": _verb("name proper"),
    "name": _verb("name proper"),
    "schedule": _verb("", "at on every for", True),
    "indent": _verb("", "with by", True),
    "connect": _verb("", "to on at", True),
    "log": _verb("", "to in", True),
    "target": _verb("number name"),
    "cache": _verb("", "for in", True),
    "send": _verb("", "through via with to from", True),
    "read": _verb("", "from through via", True),
    "load": _verb("", "from with", True),
    "draw": _verb("", "with", True),
    "render": _verb("", "with", True),
    "sign": _verb("", "with", True),
    "encrypt": _verb("", "with", True),
    "publish": _verb("", "to via", True),
    "serve": _verb("", "from with on through", True),
    "fetch": _verb("", "from via", True),
    "track": _verb("", "in with", True),
    "generate": _verb("", "with from", True),
    "mount": _verb("", "at under on", True),
    "install": _verb("", "with from via", True),
    "back": _verb("", "by with", True),
    "base": _verb("", "on", True),
    "do": _verb("", "with by", True),
    "lint": _verb("", "with", True),
    "push": _verb("", "to", True),
    "version": _verb("", "under with", True),
    "rotate": _verb("", "every after at", True),
    "handle": _verb("", "by with", True),
}
#: Participles: values only behind `be` (what was done once is no state).
PARTICIPLES = {
    form: verb
    for verb, forms in {
        "store": "stored gespeichert",
        "save": "saved",
        "keep": "kept",
        "write": "written",
        "set": "set configured gesetzt",
        "deploy": "deployed",
        "host": "hosted",
        "limit": "limited",
        "cap": "capped",
        "pin": "pinned",
        "format": "formatted",
        "build": "built",
        "test": "tested",
        "manage": "managed maintained owned verwaltet",
        "call": "called",
        "name": "named",
        "schedule": "scheduled",
        "live": "located defined",
        "cache": "cached",
        "send": "sent verschickt",
        "read": "read gelesen",
        "load": "loaded",
        "draw": "drawn",
        "render": "rendered",
        "sign": "signed",
        "encrypt": "encrypted",
        "publish": "published",
        "serve": "served",
        "fetch": "fetched",
        "track": "tracked",
        "generate": "generated",
        "mount": "mounted",
        "install": "installed",
        "back": "backed powered",
        "base": "based",
        "do": "done",
        "lint": "linted",
        "push": "pushed",
        "version": "versioned",
        "rotate": "rotated",
        "handle": "handled",
    }.items()
    for form in forms.split()
}
_IRREGULAR = {
    "use": "using utilise utilize utilizes verwenden verwendet nutzen nutzt benutzen benutzt nehmen"
    " 使用 用 采用 改用",
    "run": "running läuft laufen 运行",
    "listen": "lauscht lauschen hört 监听",
    "keep": "keeps keeping 保留",
    "live": "lie lies liegt liegen steht stehen sits resides lives"
    " 在 位于 存放在 保存在 存储在 运行在 部署在",
    "have": "has hat haben 有",
    "need": "require requires needs brauchen braucht benötigt 需要",
    "like": "likes mag mögen liebt 喜欢",
    "prefer": "prefers bevorzugen bevorzugt 偏好",
    "call": "calls heißt",
    "take": "takes dauert",
    "retry": "retries retrying",
    "expire": "expires",
    "store": "stores storing",
    "cache": "caches caching",
    "manage": "manages managing",
    "write": "writes writing",
    "schedule": "schedules",
}
_OTHER = "enable disable dislike love hate avoid forbid deny block include exclude reject require"
" show hide like remove"
#: Verbs that make a sentence of a row of words, and have no place for one value.
PLAIN_VERBS = row(
    "own like love hate dislike want support contain include skip check restart start stop delete"
    " create add remove fail"
    " pass work break depend call import export validate parse retry enable disable avoid forbid"
    " show hide open close"
    " sort return merge commit release warm rebuild block ignore require choose chose decided"
)
#: Inflected form -> verb, present tense only.
LEMMAS = {form: verb for verb, forms in _IRREGULAR.items() for form in forms.split()}
LEMMAS.update(
    {
        verb + "s": verb
        for verb in [*VERBS, *_OTHER.split(), *PLAIN_VERBS]
        if verb not in ("be", "do") and verb + "s" not in LEMMAS
    }
)
LEMMAS.update(
    {verb + "ing": verb for verb in ("listen", "need", "prefer", "host", "build", "test", "deploy")}
)

#: Verbs that tell of a change of value, and their past.
CHANGE_VERBS = row(
    "switch switched switching move moved moving migrate migrated migrating change changed"
    " upgrade upgraded downgrade"
    " downgraded bump bumped rename renamed raise raised lower lowered increase increased"
    " decrease decreased reduce"
    " reduced set update updated gewechselt umgestellt umgestiegen umgezogen migriert geändert"
    " erhöht gesenkt wechseln gestiegen"
    " 改 换 迁移 升级 切换"
)
DROP_VERBS = row("drop dropped ditch ditched abandon abandoned retire retired remove removed")
REPLACE_VERBS = row("replace replaced replacing replaces ersetzt ersetzen 替换 取代 代替")
#: Carries no subject of its own in a sentence that tells of a change.
CHANGE_FILLERS = row(
    "was were been has have had be we i ab sofort yesterday today week month year last this"
    " finally recently haben"
    " hat sind wurde worden gestern heute and und , whole entire everything project team value"
    " setting again later"
    " use 把 将 由 被 and"
)
