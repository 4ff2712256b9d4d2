"""Whether a statement outlives the work that it was made in: the filter for talks with an agent.

Most of what an agent says is true for an hour: what it is about to do, what it has just done, what
is wrong with code that it will change next. It knows nothing about points, and nothing about what
later turns say (`overturned`).
"""

from __future__ import annotations

import re

from memory.llm.extractive import cues
from memory.llm.extractive.phrases import Cue
from memory.llm.extractive.pieces import Piece, plain
from memory.llm.extractive.turns import Moment

#: Words that make a rule of a sentence: true beyond the task in which it was said.
NORM = Cue(
    r"\b(?:always(?! the same)|never|only|must|mustn't|should|shouldn't|shall|prefers?|preferred"
    r"|rather"
    r"|don't|do not|may not|no one|nobody|from now on|in future|in general|going forward|remember"
    r"|whenever|every time|(?:before|after|for|on|in) (?:you|we|every|each|any)|by default"
    r"|anything else|at (?:most|least)|keep in mind)\b",
    r"\b(?:immer|nie|niemals|nur|muss|müssen|darf|dürfen|soll|sollen|lieber|ab jetzt|künftig)\b",
    r"总是|永远|务必|必须|记住|记得|一律|不要|不得|禁止|以后|今后|只能|应该|應該|請記住",
)
#: The words of a rule that an agent does not use for what it merely expects ("should work").
RULE = Cue(
    r"\b(?:always(?! the same)|never|only|must|mustn't|don't|do not|may not|whenever|by default"
    r"|in (?:every|each)|after every|before (?:you|every|each|any))\b",
    r"\b(?:immer|nie|niemals|nur|muss|müssen|darf|dürfen)\b",
    r"总是|永远|务必|必须|一律|不要|不得|禁止|只能",
)
#: What the world demands or refuses: no edit of one's own code takes it away.
CONSTRAINT = Cue(
    r"\b(?:requires?|(?<!may )(?<!might )(?<!will )needs?(?! to\b)|cannot|can't|has no|have no"
    r"|lacks?|(?:does not|doesn't|do not|don't)"
    r" (?:support|allow|accept|have|know)|not supported|unsupported|limits|limited to|expects?"
    r"|refuses?"
    r"|rejects?|(?:is|are) (?:meant |only )?for|(?:is|are) (?:only )?(?:meant|allowed|valid)"
    r"|guarantees?|drops|pins?|at (?:most|least)|before v?\d|until v?\d|since v?\d)\b",
    r"\b(?:braucht|erwartet|verlangt|erlaubt|unterstützt)\b|需要|要求|不支持|只支持|不允许",
)
#: What a named thing does for those who use it.
CONTRACT = re.compile(
    r"\b(?:returns|raises|throws|validates|owns|stores|keeps|holds|accepts|rejects|ignores"
    r"|listens on"
    r"|belongs to|emits|locks|caches|extends|wraps|defaults to|(?:is|are) (?:stored|kept|called"
    r"|owned"
    r"|loaded|read|written|built|generated|committed|deployed|released|served|created|validated"
    r"|reachable|available|defined|documented|configured|exposed|mounted|pinned)"
    r"|runs (?:on|as|every|at|in|before|after)|lives? (?:in|at|on|under)|must|has to be)\b",
    cues.FLAGS,
)
#: A command that a reader is told to use, with when or why.
HOW_TO = re.compile(
    r"^(?:run|use|call|set|start|build|install|deploy|execute|prefer)\b[^`.]{0,40}`[^`]+`.{0,80}?"
    r"\b(?:before|after|when|whenever|every|each|because|since|otherwise|instead of|never"
    r"|always)\b",
    cues.FLAGS,
)
#: A person names what is to be done now.
ORDER = re.compile(
    r"^(?:(?:can|could|would|will) (?:you|we)|please|pls|just|now|then|and|let's|let us"
    r"|(?:i|we)(?: \w+){0,2} (?:want|need|like) (?:you )?to)?[\s,:]*"
    r"(?:add|apply|build|change|check|clean|commit|copy|create|delete|do|document|extract|find|fix"
    r"|go|implement|install|look|make|merge|migrate|move|open|propose|push|put|read|rebase|remove"
    r"|rename|replace|revert|rewrite|run|send|set up|show|split|start|take|tell|test|try|undo"
    r"|update|write)(?:an?|the)?\b(?! (?:sense|sure))|\bwant you to\b",
    cues.FLAGS,
)
#: A wish for this moment or this spot: it begins like an order and points at now or at here.
MOMENTARY = re.compile(
    r"^(?:don't|do not|please|pls|let's|let us|stop|wait|hold|first|(?:i|we) (?:don't )?(?:want"
    r"|need)"
    r"|(?:we|you) should)\b.*\b(?:(?<!from )now|yet|for now|this time|later|tonight|first|here"
    r"|there"
    r"|next|again)\b|^(?:i|we)(?: \w+)? want (?:the|a|an|this|that|it|all the) ",
    cues.FLAGS,
)
#: A person shows what went wrong.
SYMPTOM = re.compile(
    r"^(?:it|this|that|i|there)(?:'m| am)? (?:now |still |just |always )*"
    r"(?:say|get|got|see|saw|show|fail"
    r"|crash|throw|hang|complain|print|break|is an? error|stopp)\w*\b",
    cues.FLAGS,
)
MOMENTARY_START = re.compile(r"^(?:please |pls )?(?:don't|do not)\b", cues.FLAGS)
#: A verb of a person whose object has to be guessed.
UNNAMED_OBJECT = re.compile(
    r"^(?:(?:we|i|you|they|just|let's|please|can|could|should|would|must|want|need|have|to|don't"
    r"|not"
    r"|actually|really|also|simply)\s+)+\w+ (?:(?:it|them)\b(?! (?:when|if|that|to|so|how)\b)"
    r"|(?:this|that|these|those)(?: (?:in|on|at|to|into|for|from|with)\b|[.,;!]|$))",
    cues.FLAGS,
)
#: A person allows something, or hints at it.
ALLOWS = re.compile(r"^(?:(?:you|we|i) )?(?:can|could|may|might)\b(?! only)", cues.FLAGS)
#: The opening of a person who takes something back or refuses it.
REFUSING = re.compile(r"^(?:no|nope|nah|wait|stop|actually|hm+)\b[\s,.!:;-]*", cues.FLAGS)

#: A piece of work is reported as done.
DONE = (
    r"(?:added|adjusted|changed|cleaned(?: up)?|consolidated|converted|copied|created|deleted"
    r"|dropped|extracted|fixed|implemented|inlined|merged|migrated|moved|patched|rebuilt|reduced"
    r"|refactored|removed|renamed|reorgani[sz]ed|replaced|restored|reverted|rewritten|rewrote|saved"
    r"|simplified|set|pinned|bumped|enabled|disabled|configured|turned (?:on|off)"
    r"|split|switched|updated|wired|wrote)"
)
CHANGED = re.compile(
    rf"^(?:(?:(?:i|we)(?:'ve| have)?|all|everything|both) )?(?:(?:also|just|now|then) )*{DONE}\b"
    rf"|^\S+(?:(?:,| and|, and) \S+){{0,4}} (?:(?:was|were|got|has been|have been) )?"
    rf"(?:also |just |now |all )?{DONE}\b(?! by)"
    rf"|\ball (?:\w+ ){{1,2}}{DONE}\b|^(?:i|we) (?:\w+ )?{DONE}\b",
    cues.FLAGS,
)
#: What a report of work holds that stays true: how it was solved, why, what is so from now on.
REMAINS = re.compile(
    r"\b(?:by|via|with) (?:\w+ing|`)|\bnow (?!in\b|at\b|under\b|that\b)\w+s\b|, which \w+s\b",
    cues.FLAGS,
)
#: Dislike of code as it stands: said by one who is about to change it.
COMPLAINT = re.compile(
    r"\byet another\b|\bduplicat(?:e|es|ed|ing|ion)\b.{0,20}\b(?:code|logic|implementations?"
    r"|handlers?|methods?|loops?|patterns?|functions?)\b"
    r"|\b(?:code|logic) (?:is )?duplicat\w+|\bnearly identical|\b(?:almost|exactly) the same code"
    r"|\bscattered\b|\bgod (?:class|object)|\bspaghetti\b|\b(?:a|one big|such a) mess\b|\bmessy\b"
    r"|\bcopy[- ]pasted?\b|\bboilerplate\b|\bdead code\b|\btoo (?:many|much|big|large|long"
    r"|complex)\b"
    r"|\b(?:inconsistent|convoluted|redundant|over-?complicated|hard to (?:test|read|follow)"
    r"|tightly coupled|misnomer)\b|\brepetitive\b|\bcode smells?\b",
    cues.FLAGS,
)
#: Headings and lead-ins under which code is described that is about to change.
ILLS = re.compile(
    r"\b(?:issues?|problems?|duplication|smells?|complaints?|gaps?|weaknesses|pain points"
    r"|current (?:state|design|structure|code)|what'?s wrong|cons|drawbacks"
    r"|findings|i (?:found|see|noticed))\b",
    cues.FLAGS,
)
#: Headings, lead-ins and openings of what is still to be done, or only offered.
INTENT = re.compile(
    r"\b(?:plan|approach|strategy|steps?|next|to-?do|remaining|propos\w+|recommend\w*"
    r"|option [a-d1-9]"
    r"|alternatives?|ideas?|opportunit\w+|suggest\w*|pros|changes? (?:needed|required|would|are"
    r"|is)|needs? to|need to|have to|would be|could|going to|i'?ll|want to|should i|let me"
    r"|improvements?|refactor\w*|migration steps|work ?packages?|better (?:ux|way))\b",
    cues.FLAGS,
)
PLANS = re.compile(
    r"^(?:the|my|our|a|one)? ?(?:[\w-]+ ){0,2}(?:tasks?|strategy|plan|approach|idea|goal"
    r"|next steps?|key changes?|changes?|proposal|recommendation|key insight|trick)\b"
    r".{0,30}?(?::|\b(?:is|are|would|will|now)\b)"
    r"|^next,? (?:is|are|we|i|up)\b|^(?:this|that) will (?:let|allow|need|require)\b",
    cues.FLAGS,
)
#: A proposal in the voice of an agent.
OFFERS = re.compile(
    r"^(?:so )?(?:we|you|i|one)(?:'d)? (?:can|could|would|should|might|just|may|need|want"
    r"|have to)\b"
    r"|^(?:the|a|my|one) (?:[\w-]+ )?(?:fix|solution|workaround|remedy|answer|way)(?: here)? "
    r"(?:is|would|could|will)\b|\b(?:would|could|might) (?:be|also|just|work|help|make)\b"
    r"|^there (?:are|is) (?:\w+ )?(?:ways|options|possibilities|places|things|cases|steps)\b"
    r"|^(?:maybe|perhaps|alternatively|instead of \w+ing)\b|\bif you (?:want|like|prefer)\b",
    cues.FLAGS,
)
#: A fault that has no name but "the problem".
DIAGNOSIS = re.compile(
    r"^(?:i see\W+)?(?:so )?(?:the|this|that|my|here|key|main|real|only|first|second)(?: \w+)? "
    r"?(?:issues?|problems?|bugs?|errors?|failures?|crash|leak|hang|cause|culprit)"
    r"(?: here)? (?:is|are|seems?|comes?)\b",
    cues.FLAGS,
)
#: A fault seen on the way, in a turn that ends with what is done about it.
DEFECT = re.compile(
    r"\b(?:wrong|broken|missing|incorrect|stale|outdated|obsolete|unused|undefined|not exported"
    r"|doesn't (?:exist|work|match|compile)|there(?:'s| is| are) no|fails?|failing|errors?"
    r"|no longer (?:exists?|works?)|isn't|aren't)\b",
    cues.FLAGS,
)
#: Talk of the two who talk, and of the moment.
TALK = Cue(
    r"\byou(?:'ve|'d| had| have| just| also)* (?:typed|ran|asked|said|pasted|sent|mentioned|wrote"
    r"|see|saw|shared|showed|noticed|pointed|reported)\b|\bas (?:you|we) (?:can|could) see\b"
    r"|\b(?:without|to|for|by|from|with) me\b|\bi then\b|\bi (?:ran|used|tried|looked|read|checked"
    r"|searched|tested|noticed|misread|was|did|saw)\b"
    r"|\byour (?:last |previous )?(?:message|prompt|question|screenshot|idea|suggestion|structure"
    r"|request|output|terminal)\b",
    r"\b(?:this|our|the current) (?:session|conversation|chat|turn|context window)\b",
    r"\b(?:currently|right now|at the moment|so far|for now|not yet|as of now|for the moment)\b",
    r"\bbecause (?:i|we)(?:'ve| have)? (?:just )?\w+ed\b|^(?:next|first|finally|after that)\b[,: ]",
    r"\bno more (?!than)\w+|\b(?:may|might) (?:need|want|have)\b|^(?:the|this) pattern is\b"
    r"|\b(?:all|both|one|none|each|neither) of (?:them|these|those)\b",
    r"\bhow (?:it|this|that|each) works\b|\bthis is the \w+\b|^(?:let's|let me)\b"
    r"|\bhello,? world\b",
)
#: What an agent notices while it looks around.
SEEN = re.compile(
    r"^(?:i see|interesting|hm+|ah)\b[\s,:–—-]+|^only \S+ (?:is|has|uses|calls)\b",
    cues.FLAGS,
)
#: A call by its bare name at the start of a list item, without the thing that has it.
BARE_CALL = re.compile(r"^(?:new )?_?[a-z]\w*\([^)]*\)")
#: What can own a call: a class, a file, a path, an object before a dot.
OWNER = re.compile(
    r"\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+\b|\b[\w-]{1,120}\.[a-z]{2,4}\b|\w/\w|\b\w+\.\w+\("
)
STEP_WORDS = re.compile(
    r"\b(?:flow|steps?|sequence|order|order of events|works"
    r"|process)\b",
    cues.FLAGS,
)


def lasts(text: str, piece: Piece, moment: Moment) -> bool:
    """Return whether a piece says something that will still hold when the work is done.

    `text` is the piece without marks.
    """
    start = cues.OPENER.sub("", text)
    norm = NORM.search(text)
    if COMPLAINT.search(text) or (not moment.human and COMPLAINT.search(piece.lead)):
        return False
    if moment.human:
        return _lasts_of_person(start, piece, norm)
    constrained = CONSTRAINT.search(text)
    bound, caused = constrained or norm, constrained or cues.REASON.search(text)
    if TALK.search(text) or PLANS.match(start):
        return False
    if CHANGED.match(start) and not REMAINS.search(text) and not cues.REASON.search(text):
        return False
    if OFFERS.search(start) and not moment.conceding:
        return False
    if DIAGNOSIS.match(start) and (moment.working or moment.mended):
        return False
    if moment.working and DEFECT.search(text) and not bound:
        return False
    if moment.musing and not bound and not _explains(text):
        return False
    if moment.working and (SEEN.match(text) or SEEN.match(start)):
        return False
    if moment.changing and not moment.conceding and not bound and not cues.REASON.search(text):
        return False
    return _in_its_list(start, piece, bound, caused, moment)


def _explains(text: str) -> bool:
    """Return whether a sentence says why, what a thing does for others, or what is so from now."""
    return bool(cues.REASON.search(text) or CONTRACT.search(text) or REMAINS.search(text))


def binds(text: str) -> bool:
    """Return whether a sentence states a rule or a demand of the world."""
    return RULE.search(text) or CONSTRAINT.search(text)


def _lasts_of_person(start: str, piece: Piece, norm: bool) -> bool:
    """Return whether what a person says is more than an order for now."""
    refused = REFUSING.sub("", start)
    if UNNAMED_OBJECT.match(refused) or ALLOWS.match(refused) or cues.TAG_QUESTION.search(start):
        return False
    if (ORDER.search(refused) or SYMPTOM.match(refused)) and not norm:
        return False
    if MOMENTARY.search(refused) and not RULE.search(MOMENTARY_START.sub("", refused)):
        return False
    lines = piece.text.split("\n")
    lead = plain(lines[0]) if piece.kind == "block" else piece.lead
    if ORDER.search(cues.OPENER.sub("", lead)) and not NORM.search(lead):
        return False
    mapped = [line for line in lines if cues.MAPPING.search(line)]
    return len(mapped) < 2 or any(cues.FACT.search(plain(line)) for line in mapped)


def _in_its_list(start: str, piece: Piece, bound: bool, caused: bool, moment: Moment) -> bool:
    """Return whether an item or block stands for itself and is not part of a plan."""
    if piece.kind == "sentence":
        return not (ILLS.search(piece.lead) and not caused)
    lead = plain(piece.text.split("\n", 1)[0]) if piece.kind == "block" else piece.lead
    if not caused and (moment.offering or (INTENT.search(lead) and not moment.conceding)):
        return False
    if piece.kind == "block":
        items = [plain(line) for line in piece.text.split("\n")[1:] if line.strip()]
        bare = 2 * sum(1 for item in items if BARE_CALL.match(item)) > len(items)
        if bare and not OWNER.search(f"{piece.text} {piece.lead}"):
            return False
        return not (CHANGED.match(cues.OPENER.sub("", lead)) or ILLS.search(lead))
    if ILLS.search(piece.lead) and not caused:
        return False
    if CHANGED.match(cues.OPENER.sub("", piece.lead)) and not bound:
        return False
    if piece.numbered and not bound and not caused:
        return False
    if STEP_WORDS.search(piece.lead) and not caused:
        return False
    return not BARE_CALL.match(start) or bool(OWNER.search(piece.text) or OWNER.search(piece.lead))
