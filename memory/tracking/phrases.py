"""Words by which people promise, ask, claim, confirm and deny: English, and the plainest German.

Tables for `memory.tracking.cues`, which says where each may stand. Knows nothing about tasks.
"""

from __future__ import annotations

import re

#: What changes something, so that one can say later whether it was done. "I'll look at it" is not.
CHANGE = (
    "fix|add|implement|write|rewrite|update|remove|delete|refactor|create|migrate|rename|replace"
    "|document|deploy|upgrade|downgrade|build|clean up|change|handle|convert|split|move|extract"
    "|open (?:a|an|the) (?:pr|pull request|issue|ticket)|commit|push|publish|ship|bump|extend"
    "|support|follow up|finish|complete|cover|revert|restore|wire|hook up|simplify|rework"
    "|set up|install|configure|enable|disable|merge|release|drop|port|redo|improve"
    "|optimi[sz]e|adjust|correct|repair|resolve|solve|introduce|integrate|switch|prepare|draft"
    "|schedule|tidy|generate|reduce|increase|pin|cache|log|validate|expose|copy|send"
)
#: What is asked for ("make it faster") and promised of all sorts of things ("we'll make it").
_MAKE = "make(?! (?:sure|it happen|memories|some|a difference))"
#: What a person may ask for besides, and hear the outcome of.
CHECK = (
    "run|check|verify|test|review|investigate|debug|look into|find out|figure out|reproduce"
    "|measure|profile|benchmark|audit|research|compare"
)
PAST = (
    "fixed|added|implemented|wrote|written|rewrote|rewritten|updated|removed|deleted|refactored"
    "|created|migrated|renamed|replaced|documented|deployed|upgraded|built|cleaned up|changed"
    "|converted|split|moved|extracted|opened|committed|pushed|published|shipped|bumped|extended"
    "|finished|completed|reverted|restored|wired|simplified|reworked|set up|installed"
    "|configured|enabled|disabled|merged|released|dropped|ported|improved|optimi[sz]ed|adjusted"
    "|corrected|repaired|resolved|solved|introduced|integrated|switched|prepared|drafted"
    "|scheduled|generated|reduced|increased|pinned|copied|sent"
)
STATE = (
    "fixed|done|implemented|complete|completed|resolved|finished|in place|merged|deployed|solved"
    "|shipped|released"
)
_ASIDE = "please|also|now|just|then|first|maybe|quickly|go ahead and|simply|next|instead|already"
_OPENER = (
    r"(?:(?:ok|okay|alright|all right|right|great|good|perfect|nice|cool|thanks|thank you|yes|yep"
    r"|yeah|sure|now|then|next|first|also|btw|hi|hey|so|and|finally|awesome|excellent|super|ja"
    r"|danke|gut|top|wow|jesus|oh|ha|haha|yay|hooray|lovely|actually|no)\b[\s,.!:;-]*)"
)
#: Where a clause begins: the sentence, or what follows a comma, a semicolon, a dash or "and".
_CLAUSE = rf"(?:^[^\w`\[]*{_OPENER}{{0,3}}|[,;\u2013\u2014-]\s+|\b(?:and|so|but|then)\s+)"
_ASIDES = rf"(?:(?:{_ASIDE})\s+){{0,3}}"
# Why a noun after it is looked at: "build fails" and "test results" ask for nothing.
_NO_NOUN = (
    r"(?!\s+(?:fails?|failed|failing|is|was|are|were|results?|logs?|broke|breaks?|errors?|has|does"
    r"|did|seems?|looks?|works?|times?|of|by|on|failures?|passes|passed|requests?|you|your"
    r"|through|up with|nothing|nobody|neither|not(?!-)|no(?!-))\b)"
)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_TODO = r"^\W*(?:TODO|FIXME|to[- ]do|next up|next step|action item|follow[- ]up)\s*:\s+\S"

_GERMAN_ORDER = (
    r"behebe|fixe|[\u00e4a]e?ndere|f[\u00fcu]e?ge?|schreibe?|mache?|entferne|l[\u00f6o]e?sche|baue?"
    r"|erg[\u00e4a]e?nze|implementiere|aktualisiere|erstelle|verschiebe|ersetze|korrigiere"
    r"|repariere|dokumentiere|pr[\u00fcu]e?fe?|teste"
)
_GERMAN_VERB = (
    r"beheben|fixen|[\u00e4a]e?ndern|hinzuf[\u00fcu]e?gen|einf[\u00fcu]e?gen|schreiben|entfernen"
    r"|l[\u00f6o]e?schen|bauen|einbauen|umbauen|erg[\u00e4a]e?nzen|implementieren|aktualisieren"
    r"|erstellen|anlegen|verschieben|ersetzen|korrigieren|reparieren|dokumentieren|umbenennen"
)
_GERMAN_PAST = (
    r"behoben|gefixt|ge[\u00e4a]e?ndert|hinzugef[\u00fcu]e?gt|eingef[\u00fcu]e?gt|geschrieben"
    r"|entfernt|gel[\u00f6o]e?scht|eingebaut|umgebaut|erg[\u00e4a]e?nzt|implementiert|aktualisiert"
    r"|erstellt|angelegt|verschoben|ersetzt|korrigiert|repariert|dokumentiert|umbenannt"
)

#: The assistant says what it will do. "Now I'll" and "let me" tell what it does at that moment.
PROMISE = _any(
    rf"{_CLAUSE}(?:I['\u2019]ll|I will|I['\u2019]m going to|I am going to|I shall|we['\u2019]ll"
    rf"|we will)\s+(?!now\b){_ASIDES}(?P<p1>{CHANGE})\b",
    _TODO,
    rf"\bich werde\b.{{2,120}}\b(?:{_GERMAN_VERB})\W*$",
    rf"\bich muss noch\b.{{2,120}}\b(?:{_GERMAN_VERB})\W*$",
)
PROMISED_NOW = re.compile(
    r"\b(?:now|jetzt),? (?:I|we|ich)\b|\b(?:I|we)(?:['\u2019]ll| will) now\b|\bthis time\b", re.I
)

#: Somebody asks for it.
REQUEST = _any(
    rf"\bplease,?\s+(?!don|do not|note|see|let){_ASIDES}(?:{CHANGE}|{CHECK}|{_MAKE})\b",
    rf"{_CLAUSE}(?:(?:can|could|would|will)\s+you|can\s+we)\s+{_ASIDES}"
    rf"(?:{CHANGE}|{CHECK}|{_MAKE})\b",
    rf"{_CLAUSE}let(?:['\u2019]?s| us)\s+{_ASIDES}(?:{CHANGE})\b",
    rf"\bI\s?(?:['\u2019]d like|would like|need|want)\s+you\s+to\s+{_ASIDES}(?:{CHANGE}|{CHECK})\b",
    _TODO,
    rf"\bbitte\s+(?:(?:noch|auch|mal|jetzt)\s+){{0,2}}(?:{_GERMAN_ORDER})\b",
    r"\b(?:kannst|k[\u00f6o]e?nntest|w[\u00fcu]e?rdest)\s+du\b.{2,160}"
    rf"\b(?:{_GERMAN_VERB})\W*$",
)
#: The bare order, at the beginning of a sentence of what a person typed.
ORDER = re.compile(
    rf"^[^\w`\[]*{_OPENER}{{0,3}}(?:{CHANGE}|{_MAKE})\b{_NO_NOUN}\s+\S", re.IGNORECASE
)

_TELLS = (
    r"(?:asked|asks|told|tells|begged|begs|reminded|instructed|(?:he|she|they|who|somebody|someone)"
    r" wants?|wanted|said|says|wrote|writes|replied|commented|requested|quoted?|sagte?|schrieb"
    r"|meinte?|bat)"
)
#: What, right before a request, makes it one that was made of somebody else, or by somebody else.
TOLD_ON = re.compile(
    rf"(?<!\bas I )\b{_TELLS}\b(?! you\b)"
    r"(?:(?:\s+(?:me|us|him|her|them|it))?\s*[,:]|[^,;.:\n]{0,60}:?)\s*[\"'\u201c\u201e]?\s*$",
    re.IGNORECASE,
)

#: What makes of an opening a question, an offer or a case.
CONDITION = _any(
    r"^\W*(?:if|when|whenever|unless|once|should|where|wenn|falls)\b",
    r"\bif (?:you|needed|necessary|that|it)\b|\bunless\b|\blet me know\b|\bwould you like\b",
    r"\bwant me to\b|\bshall I\b|\bshould I\b|\bonce you\b|\bhow (?:can|could|would|do)\b",
    r"\bas an example\b|\bfor example\b|\be\.g\.|\bwenn du\b|\bsoll ich\b",
)

DONE = _any(
    rf"^[^\w`]*{_OPENER}{{0,3}}(?:all |everything (?:is |['\u2019]s )?)?(?:{STATE})\b"
    r"(?!\s+(?:when|if|once|by|with the)\b)",
    rf"\b(?:I|we)(?:['\u2019]ve| have)?\s+(?:(?:now|just|also|already|successfully|fully|then)\s+)"
    rf"{{0,3}}(?:{PAST})\b",
    r"(?:\b(?:is|are|was|were|has been|have been)|['\u2019]s)\s+(?:(?:now|all|fully|already)\s+)"
    rf"{{0,2}}(?:{STATE})\b",
    r"\b(?:all|the|every|\d+)\s+(?:[\w-]+\s+){0,3}(?:tests?|checks?)\s+"
    r"(?:(?:now|are|still|all|is)\s+){0,2}(?:pass|passes|passed|passing|green)\b",
    r"^\W*(?:tests?|checks?|everything|it|that|this)\s+(?:(?:now|all|should now)\s+){0,2}"
    r"(?:pass|passes|works?|compiles?|builds?)\b",
    r"^\W*(?:fertig|erledigt|behoben|gefixt)\b",
    rf"\bich habe\b.{{2,160}}\b(?:{_GERMAN_PAST})\b",
    rf"\bist (?:jetzt |nun )?(?:{_GERMAN_PAST}|erledigt|fertig)\b",
)
#: The assistant's report in one participle: "Added retries to the uploader."
DONE_BARE = re.compile(rf"^[^\w`]*{_OPENER}{{0,3}}(?:{PAST}|made)(?=\s+[\w`*\"])", re.IGNORECASE)

_ATTEMPT = (
    "get|make|fix|reproduce|implement|finish|complete|resolve|solve|build|install|run|apply"
    "|update|add|connect|deploy|push|merge|migrate|publish"
)
FAILED = _any(
    r"\b(?:I|we)(?:['\u2019]m| am)?\s+(?:could not|couldn['\u2019]?t|cannot|can['\u2019]t"
    r"|was unable to|were unable to|unable to|did not manage to|didn['\u2019]?t manage to"
    rf"|failed to|was not able to|wasn['\u2019]?t able to)\s+(?:\w+ly\s+)?(?:{_ATTEMPT})\b",
    rf"^\W*(?:unfortunately,?\s+)?(?:could not|unable to|failed to)\s+(?:{_ATTEMPT})\b",
    r"\b(?:I|we)(?:['\u2019]ve| have)?\s+(?:gave|given|giving)\s+up\b",
    r"\b(?:I['\u2019]m|I am|we['\u2019]re|we are|this is)\s+(?:blocked|stuck)\b",
    rf"\bich konnte\b.{{0,120}}\bnicht (?:{_GERMAN_VERB})",
)

_GOOD = (
    "works?|worked|working|fixed it|fixed that|fixed|solved it|solved|did it|did the trick"
    "|passes|pass|good now"
)
CONFIRMED = _any(
    rf"^\W*{_OPENER}{{0,3}}(?:(?:it|that|this|everything|all)(?:['\u2019]s| is| all| has)?\s+)"
    rf"(?:(?:now|all|finally|really)\s+){{0,2}}(?:{_GOOD})\b",
    rf"^\W*{_OPENER}{{0,3}}(?:works|worked|fixed|solved|confirmed|lgtm|can confirm|looks good"
    r"|looks great)\b",
    r"\bthat (?:fixed|solved) (?:it|the|my)\b(?: (?:problem|issue|bug|error|crash)\b)?",
    r"\bworks (?:now|fine|great|perfectly|like a charm|as expected)\b",
    rf"^\W*{_OPENER}{{0,3}}(?:(?:es|das|jetzt|alles|nun)\s+){{0,2}}(?:funktioniert|geht|klappt"
    r"|l[\u00e4a]e?uft)(?:\s+(?:jetzt|nun|wieder))?\W*$",
    r"\bhat (?:geklappt|funktioniert|geholfen)\b",
)
DENIED = _any(
    r"\bstill\s+(?:[\w'\u2019]+\s+){0,2}?(?:broken|failing|fails?|crash(?:es|ing)?|wrong|red"
    r"|not work\w*|doesn['\u2019]?t|does not|isn['\u2019]?t|is not|not fixed|not done|happens?"
    r"|happening|getting(?! used)|get(?! used)|seeing|see|missing|there|the same)\b",
    r"\b(?:it|that|this)\s+(?:still\s+)?(?:didn['\u2019]?t|did not|doesn['\u2019]?t|does not)\s+"
    r"(?:work(?! out)|fix|help|solve|change anything)\b",
    r"\b(?:is|are|was)(?:n['\u2019]?t| not)\s+(?:fixed|done|working|solved|implemented)\b",
    r"^\W*(?:(?:no|nope|hm+)\W+)?(?:the |exactly the )?same (?:error|problem|issue|failure)\b",
    r"\byou\s+(?:didn['\u2019]?t|did not|forgot to|haven['\u2019]?t)\s+(?:actually\s+|really\s+)?"
    r"(?:fix|add|do|implement|finish|update|remove|change)\w*\b",
    r"\b(?:geht|funktioniert|klappt|l[\u00e4a]e?uft)\s+(?:immer noch|noch immer|noch|weiterhin)\s+"
    r"nicht\b",
    r"\bimmer noch (?:kaputt|rot|falsch|nicht)\b|\bhat nicht (?:geholfen|geklappt|funktioniert)\b",
)

#: What takes a claim or a confirmation back when it stands before it in the sentence.
DOUBT = re.compile(
    r"\b(?:not|never|no|nothing|none|isn['\u2019]?t|wasn['\u2019]?t|aren['\u2019]?t|hasn['\u2019]?t"
    r"|haven['\u2019]?t|don['\u2019]?t|doesn['\u2019]?t|didn['\u2019]?t|if|once|when|whenever|until"
    r"|unless|should|would|could|might|may|will|must|to be|needs?|let me|want|going to|plan"
    r"|I['\u2019]ll|ensure|make sure|check|see|verify|whether|assume|assuming|nicht|wenn|falls"
    r"|sobald|who|which|after you|how|why|what|where|almost|partly|nearly|nobody|no one|neither"
    r"|doubt\w*|says?|said|thinks?|claims?|claimed|told|heard|believes?|pretends?|supposedly"
    r"|allegedly|apparently|presumably|seems?|probably|perhaps|maybe|guess|wonder|hopes?|hopefully"
    r"|wish|(?<!as )expect\w*|hardly|barely|scarcely|rarely|seldom|sometimes|nie|niemals|niemand"
    r"|keine?[mnrs]?|kaum|angeblich|vielleicht|hoffentlich|sagt|meint)\b",
    re.IGNORECASE,
)
#: What takes it back when it follows at once: "fixed nothing", "works not at all".
NOTHING = re.compile(
    r"[\s:,\u2013\u2014-]+(?:(?:absolutely|exactly|almost|virtually|really|just|still|even)\s+)?"
    r"(?:nothing|nobody|neither|never|nowhere|nichts|niemand\w*|keine?[mnrs]?|not|(?-i:none)"
    r"|no(?! longer\b| more\b))\b(?!-)",
    re.IGNORECASE,
)
#: What takes it back somewhere behind it.
UNDONE_BEHIND = re.compile(
    r"\bnot at all\b|\bnot\W*$|\b(?:in vain|for nothing|to no avail|without (?:success|effect))\b"
    r"|(?<!that )(?<!which )(?<!what )\bbroke (?:it|this|that|them|everything|all|the|main"
    r"|things)\b",
    re.IGNORECASE,
)
#: What leaves no praise of what stands before it.
UNPRAISED = re.compile(
    r"\b(?:not|never|nothing|nobody|none|neither|nowhere|badly|worse|worst|barely|hardly|poorly"
    r"|wrong\w*|br[eo]ak\w*|broke\w*|crash\w*|fail\w*|hangs?|freez\w*|stops?|stopped|bugs?|doubt\w*"
    r"|says?|said|claims?|as before|used to|until|sometimes|nicht|nie|kein\w*|falsch"
    r"|no(?! (?:more |other )?(?:errors?|problems?|issues?|complaints?|warnings?|crash(?:es)?"
    r"|failures?)\b))\b|n['\u2019]t\b",
    re.IGNORECASE,
)
#: What may follow a "works" that is praise, to its end.
# Why a list: "works exactly as badly", "works nowhere" and "fixed the wrong line" have no end.
PRAISED = re.compile(
    r"(?:\s+(?:now|again|fine|great|good|well|perfectly|nicely|beautifully|flawlessly|smoothly"
    r"|correctly|properly|really|already|locally|here|too|very|much|so much|as well|this time"
    r"|like a charm|as (?:expected|intended|hoped)|(?:for|to) (?:me|us)|thanks?(?: you)?|thx|ty"
    r"|yay|it|that|this|(?:the|my) (?:problem|issue|bug|error|crash|trick)"
    r"|jetzt|nun|wieder|danke))*(?:\W*$|\s*[,.;:!)\u2013\u2014-]|\s+and\b)",
    re.IGNORECASE,
)
#: What makes a result one that is hoped for, made up, or somebody else's.
EXPECTED = re.compile(
    r"\b(?:should|would|could|might|may|shall|must|expect\w*|suppos\w*|assum\w*|imagin\w*|hop\w+"
    r"|wish\w*|wants?|wanted|needs?|needed|goal|target|aim|ideal\w*|desired|example|sample|e\.g\."
    r"|for instance|such as|like this|something like|if|unless|until|once|when\w*|before|after that"
    r"|will (?:be|print|show|say|see|look|read|give)|['\u2019]ll (?:be|print|show|say|see|look|get)"
    r"|yesterday|last (?:week|month|year|night|time)|used to|previous\w*|earlier|claim\w*|says?"
    r"|said|told|reported\w*|pretend\w*|fak\w+|another|other|someone|somebody|his|her|their"
    r"|sollte\w*|w[\u00fcu]e?rde\w*|wenn|falls|sobald|erwartet\w*|beispiel\w*|gestern|vorher)\b",
    re.IGNORECASE,
)
#: What takes it back wherever it stands.
HALF = re.compile(
    r"\b(?:but|except|however|almost|partly|not yet|yet to|aber|au\u00dfer|other than)\b",
    re.IGNORECASE,
)
