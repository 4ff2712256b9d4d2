"""The words by which a sentence shows what it is: a decision, a cause, a preference, mere talk.

Patterns for English, German and Chinese, by kind of phrase, never by subject matter. This module
knows nothing about weights, positions or neighbours: it names what it sees.
"""

from __future__ import annotations

import re

from memory.llm.extractive.phrases import Cue

FLAGS = re.IGNORECASE


#: What a sentence may be worth keeping for, the strongest class first.
CLASSES: dict[str, Cue] = {
    "decision": Cue(
        r"\b(?:we|i|team)(?:'ve| have| had)?(?: \w+)? (?:decided|agreed|chose|settled|opted"
        r"|picked)\b",
        r"\b(?:let'?s|let us) (?:go with|use|keep|stick|switch|drop|skip|stay|avoid|not)\b",
        r"\b(?:we|i)(?:'ll| will| are going to|'re going to)(?: now| just| all)? "
        r"(?:use|keep|go with|stick|switch|drop|stay|adopt|migrate|move to|standardi[sz]e)\b",
        r"\b(?:we|i)(?: actually| just| really| only| would| 'd)* want (?:to (?!know|see"
        r"|make sure|do\b)|it |the |them )",
        r"\bgo(?:ing)? with\b.{2,60}\b(?:because|since|for|over|instead)\b",
        r"\b(?:decision|agreed|decided|verdict)\s*[:：]",
        r"\binstead of\b|\brather than\b|\bin favou?r of\b|\bno longer (?:use|need|support)",
        r"\b(?:entschieden|beschlossen|festgelegt|vereinbart|geeinigt)\b|\bentscheidung\s*:",
        r"\bwir (?:nehmen|verwenden|nutzen|bleiben bei|wechseln|setzen auf|steigen)\b"
        r"|\blass uns\b",
        r"\b(?:statt|anstelle|anstatt)\b",
        r"决定|决议|商定|选定|选择了|改用|采用|沿用|弃用|我们(?:就)?用|还是用|不再使用|代替"
        r"|而不用|確定|決定",
    ),
    "root-cause": Cue(
        r"\broot cause\b|\bculprit\b|\bturn(?:s|ed) out\b|\bcaused by\b|\bthe reason\b"
        r"|\bthat'?s why\b",
        r"\b(?:problem|issue|bug|cause|error|failure|crash|leak|regression)\b[^.?!]{0,40}?"
        r"\b(?:is|was|were|are|comes? from|came from)\b(?! (?:fixed|resolved|gone|solved))",
        r"\b(?:fail(?:s|ed)|breaks?|broke|crash(?:es|ed)|hangs?"
        r"|hung)\b[^.?!]{0,60}\b(?:because|since|as|due to|when|unless)\b",
        r"\bdue to\b|\bbreaks? (?:this|it|the)\b",
        r"\b(?:ursache|grund|fehler|problem)\b.{0,40}\b(?:war|ist|lag|liegt)\b|\blag (?:daran"
        r"|an)\b|\bliegt (?:daran|an)\b",
        r"根本原因|原因(?:是|在于)|问题(?:是|在于|出在)|導致|导致|由于|是因为",
    ),
    "instruction": Cue(
        r"\b(?:always|never)\b(?! (?:mind|know|heard|seen|thought|been|been|say|wanted|liked"
        r"|gets? old))",
        r"\bremember (?:to|that|this|:)|\bfrom now on\b|\bgoing forward\b|\bkeep in mind\b"
        r"|\bmake sure\b|\bbe sure\b",
        r"\b(?:do not|don't|dont|must not|mustn't|may not|should(?:n't| not)) (?!know|think"
        r"|worry|have|want|need|see|get|understand|be sure|care|feel)\w+",
        r"\b(?:must|has to|have to|needs to) be\b|\b(?:they|we|you|(?!yes)\w+s) need to be\b",
        r"\b(?:ask|tell|warn|check with) (?:me|us)\b.{0,20}\bbefore\b|\bno \w+(?: \w+)?,? please\b",
        r"\bno (?:more )?\w+ (?:in|without|before|after|on|outside)\b.{0,40}\b(?:please|ever)\b",
        r"\bimmer\b|\bnie(?:mals)?\b|\bab jetzt\b|\bmerk(?:e)? dir\b|\bdenk daran\b"
        r"|\bnicht vergessen\b|\bvergiss nicht\b",
        r"\bbitte\b.{0,40}\b(?:nicht|kein|keine|nur)\b|\bauf keinen fall\b",
        r"总是|永远|务必|必须|請記住|请记住|记住|记得|一律|不要|不得|禁止|以后都|今后",
    ),
    "preference": Cue(
        r"\bi(?:'d| would)? (?:much |really |strongly |would |only |rather )*(?:prefer|rather"
        r"|only want)\b|\bprefers?\b|\bpreferred\b",
        r"\bi (?:really |just )?(?:like|love|hate|dislike|can't stand) (?:it when|when|how|to"
        r"|the|using|\w+ing\b)",
        r"\bi(?:'d| would)(?: \w+)? (?:expect|assume|think that|like (?:to|it|the|all|every))\b",
        r"\b(?:my|our) (?:preference|preferred|style|convention|rule|favou?rite|default"
        r"|workflow)\b",
        r"\bi want (?:you|all|every|each|it|them|the|a|an|this|my|our)\b(?! to (?:do|read|look"
        r"|check|go|provide))",
        r"\b(?:ich|wir) (?:bevorzug\w+|mag|mögen|hätten? gern\w*|will|wollen|möchten?)\b"
        r"|\bmir ist .{0,20}lieber\b|\blieber\b",
        r"我(?:更|比较)?(?:喜欢|偏好|倾向|希望|想要)|宁愿|更喜欢|偏好",
    ),
    "correction": Cue(
        r"^(?:no|nope|nah|wrong|wait|stop)\b[,.!:]+ ?\S|^(?:no|wait),? actually\b|^actually\b",
        r"\bthat'?s (?:wrong|not (?:right|correct|true|what|how))\b|\bi (?:was|stand) (?:wrong"
        r"|mistaken|corrected)\b",
        r"\bi (?:meant|misread|misspoke|overcomplicated)\b|\bcorrection\b"
        r"|\bnot \S+(?: \S+){0,3},? but\b",
        r"^(?:nein|doch)\b[,.!: ]|\bdas stimmt nicht\b|\bgemeint war\b"
        r"|\bnicht \S+(?: \S+){0,3}, sondern\b|\beigentlich\b",
        r"^不(?:对|是|行)[,，。]|不是.{1,20}而是|更正|弄错|搞错|应该是|其实",
    ),
    "fix": Cue(
        r"\b(?:the|a|this|proper|right|quick|real) (?:fix|solution|workaround|remedy|trick)\b",
        r"\b(?:fixed|solved|resolved|worked around|repaired|patched)\b[^.?!]{0,60}\b(?:by|with"
        r"|via|through|using|in)\b",
        r"\b(?:adding|setting|removing|changing|replacing|upgrading|downgrading|pinning"
        r"|moving)\b.{3,60}\b(?:fix(?:es|ed)?|solv(?:es|ed)|works|worked|helped)\b",
        r"\bto (?:fix|avoid|prevent|work around) (?:this|it|that|the)\b|\bworkaround\b",
        r"\b(?:behoben|gelöst|repariert)\b|\bdie lösung\b|\babhilfe\b",
        r"修复|修好|解决(?:了|办法|方法|方案)|改成|办法是",
    ),
    "plan": Cue(
        r"\b(?:i|we)(?:'m| am|'re| are) (?:going to|gonna|planning|hoping|thinking (?:of"
        r"|about)|looking forward|about to|aiming)\b",
        r"\b(?:plan|plans|planned|hope|dream|aim|goal|intend|deadline|due)\b|\b(?:next"
        r"|this) (?:week|month|sprint|quarter|release|year)\b",
        r"\b(?:vorhaben|geplant|planen|nächste (?:woche|version)|bis (?:freitag|montag"
        r"|ende))\b|计划|打算|准备|下周|下个月|目标",
    ),
}

#: A statement of how things are, about something that can be named.
FACT = Cue(
    r"\b(?:is|are|was|were|isn't|aren't|has|have|had|hasn't|uses?|used|calls?|returns?|takes?"
    r"|stores?|saves?|keeps?|requires?|"
    r"expects?|supports?|extends?|handles?|lives?|runs?|needs?|exposes?|contains?|includes?"
    r"|loads?|reads?|writes?|sends?|"
    r"does|doesn't|do not|did not|didn't|cannot|can't|can|will|won't|only|ignores?|defaults?"
    r"|depends?|belongs?|becomes?|means?|"
    r"holds?|owns?|costs?|starts?|stops?|listens?|accepts?|rejects?|refuses?|throws?|raises?"
    r"|emits?|triggers?|queues?|inserts?|"
    r"gets?|goes?|comes?|lives?|listens?|makes?|gives?|works?|builds?|must|should|allows?"
    r"|prevents?|breaks?|moves?|moved"
    r"|switched|replaced|removed|renamed|deployed|set|fixed|dropped|changed|lost|failed)\b",
    r"\b(?:ist|sind|war|waren|hat|haben|braucht|läuft|liegt|nutzt|verwendet|heißt|gibt|kann"
    r"|muss|darf|wird|werden|steht|kostet)\b",
    r"是|有|在|用|需要|支持|返回|运行|位于|只能|可以|不能|会|应|默认",
)

#: Something that can be named exactly: code, a path, a command, a version, a port, a number.
EXACT = re.compile(
    r"`[^`\n]{2,}`|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b"
    r"|\b[A-Za-z][^\W_]*_\w+\b|\b[\w.]{1,120}\(\)|(?<![~.\w-])[~.\w-]*/[\w.@-]+/[\w./@-]+"
    r"|\b[\w-]{1,120}\.[a-z]{2,4}\b(?!\.)"
    r"|\bv?\d+\.\d+(?:\.\d+)*\b|(?<!\w)--?[a-z][\w-]+|\b[A-Z][A-Z0-9_]{2,}\b|\bport \d+\b"
    r"|\b[a-z]+(?:-[a-z0-9]{1,60}){0,12}-\d+\b|\b\d{4,5}\b"
    r"|\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds|minutes"
    r"|hours|days|kb|mb|gb|%|rows"
    r"|tokens|requests|retries|threads|workers|Zeilen|Sekunden|Minuten|Stunden|Tage)(?!\w)"
    r"|https?://\S+"
    # A product with its version, and not a month, a step or a place in a list.
    r"|\b(?=[A-Z])(?!(?:Jan|Feb|Mar|Apr|May|June?\b|July?\b|Aug|Sep|Oct|Nov|Dec|Step|Phase"
    r"|Option|Line|Task"
    r"|Part|Page|Section|Chapter|Item|Issue|Day|Week|Month|Year|Case|Round|Level|Figure|Table|Top"
    r"|Room|The|In|At|On|Of|For|From|With|And|Or|But|Only|All|About|Over|Under|Around|After|Before"
    r"|Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\b)[A-Z][A-Za-z+#]{1,60}(?:\.js)? v?\d{1,3}\b(?![.:]\d)"
)

#: One thing goes to another: a move, a renaming, a table of what belongs where.
MAPPING = re.compile(r"\S[ \t]*(?:->|=>|→|⇒)[ \t]*\S")
#: A proper name inside a sentence.
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+\b")
#: A line of a stack trace or a log.
TRACE = re.compile(
    r"^[^\S\n]{0,80}(?:at \S{1,400} \(|File \"|(?:npm|pip) (?:ERR|WARN))|^Traceback|\wError: "
    r"|^\[?\d{4}-\d\d-\d\d[T ]\d\d:|\berrno\b"
    r"|^Error: |^[$>➜#] ",
    re.MULTILINE,
)

REASON = Cue(
    r"\b(?:because|since|so that|therefore|hence|which means|in order to|otherwise|thus)\b"
    r"|, so\b",
    r"\b(?:weil|denn|damit|deshalb|daher|sonst|da)\b|因为|所以|因此|以便|否则|为了",
)
CONTRAST = Cue(
    r"\b(?:instead|rather than|not \w+|only|but|unless|except|without|never|must|no longer"
    r"|whereas|while)\b",
    r"\b(?:statt|nicht|nur|aber|sondern|außer|ohne)\b|而不|只|但|除非|除了",
)
TIME = Cue(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|recently|lately|since|weekend)\b",
    r"\b(?:last|next|this|past|every) (?:\w+day|week|month|year|night|summer|winter|spring"
    r"|fall|autumn|weekend|morning)\b",
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:19|20)\d\d\b|\b(?:\d+|two|three|four"
    r"|five|six|ten|few) (?:days?|weeks?|months?|years?)\b",
    r"\b(?:january|february|april|june|july|august|september|october|november|december)\b"
    r"|\bin (?:march|may)\b",
    r"\b(?:gestern|heute|morgen|letzte[ns]?|nächste[ns]?|seit|vor \w+ (?:tagen|wochen|monaten"
    r"|jahren))\b",
    r"昨天|今天|明天|上周|下周|上个月|去年|明年|最近|年前|\d+月",
)
SELF = Cue(
    r"\b(?:i|i'm|i've|i'll|i'd|im|ive|me|my|mine|myself|we|we're|we've|we'll|our|us)\b",
    r"\b(?:ich|mein\w*|mir|mich|wir|uns|unser\w*)\b|我|咱|俺",
)
#: What a person says of themselves, their people and their ways.
OWN = Cue(
    r"\b(?:my|our) \w+",
    r"\b(?:i'm|i am|we're|we are) (?:a |an |the |in |at |on |from |allergic|based|using"
    r"|running|responsible|\d)",
    r"\b(?:we|i) (?:use|run|have|deploy|host|work|live|own|maintain|support|speak|ship|release"
    r"|target|indent|follow|pin|usually|mostly)\b",
    r"\b(?:mein|meine|unser|unsere) \w+|\bwir (?:haben|benutzen|arbeiten|betreiben)\b"
    r"|\bich (?:bin|habe|wohne|arbeite)\b",
    r"我(?:的|是|有|住|在)|我们(?:的|有|在|公司|团队)",
)
KIN = Cue(
    r"\b(?:my|our) (?:\w+ )?(?:mom|mum|dad|mother|father|parents?|wife|husband|partner|kids?"
    r"|child(?:ren)?|sons?|daughters?|family|"
    r"friends?|brothers?|sisters?|grand\w+|boss|manager|team|colleagues?|girlfriend|boyfriend"
    r"|cousins?|neighbou?rs?|dogs?|cats?|pets?)\b",
    r"\bmein\w* (?:frau|mann|mutter|vater|tochter|sohn|kinder|familie|freund\w*|bruder"
    r"|schwester|chef\w*|team)\b",
    r"我(?:的)?(?:妈|爸|妻子|老婆|丈夫|老公|孩子|儿子|女儿|朋友|同事|老板|家)",
)

# -- what speaks against a sentence ---------------------------------------------------------------

#: Words that lead a sentence without saying anything; looked through before judging the rest.
OPENER = re.compile(
    r"^(?:(?:ok(?:ay)?|good(?: (?:catch|point|idea|question|progress|call|thinking))?|great"
    r"|nice|perfect|excellent|alright|all right|right|sure|yes|yeah|yep|"
    r"got it|i see|you'?re (?:absolutely |totally |quite )?right|now|then|next|first(?:ly)?"
    r"|second(?:ly)?|finally|also|and|but|so|well|hmm+|btw|done|[a-z]{1,5}-?\d{1,4}(?=[:.])|"
    r"gut|also|nun|jetzt|dann|好的?|嗯|那)\b[\s,.!:;–—-]*)+",
    FLAGS,
)
#: Assent before a sentence; without it the sentence says the same. A "no" is not one.
ASSENT = re.compile(
    r"^(?:(?:so+|hm+|yes|yeah|yep|ok(?:ay)?|alright|all right|right|sure|great|perfect|indeed"
    r"|exactly|good (?:catch|point|idea|question)|got it|done|ja|genau|对|好的?"
    r"|(?:also|btw|oh|and)(?=[,:]))(?:[\s,.!:，。！]+|$))+"
    r"(?<=[,.!:，。！\s])",
    FLAGS,
)
NARRATION = re.compile(
    r"^(?:let me\b|let'?s (?!go with|use|keep|stick|switch|drop|not\b|stay|avoid)|i(?:'ll"
    r"| will|'m going to| am going to|'m now| am now| need to| want to| should| can now"
    r"| can see| have to|'ve got| now)\b"
    r"|(?:need|time|going|ready|want me) to\b|(?:add|update|create|fix|check|run|read|write"
    r"|look|find|verify|test|commit|remove|rename|move|clean|"
    r"call|continue|start|make|see|show|search|examine|implement|replace|use|get|copy|try|open"
    r"|review|build|install)(?:ing)?\b(?=.{0,120}[:.…]?$)"
    r"|(?:now )?i (?:have|understand|see|can see|know|found|notice)\b|there (?:are|is) (?:many"
    r"|a few|some|several|one|two|three)\b.{0,40}(?:errors?|issues?|problems?|more)\b"
    r"|here(?:'s| is| are)\b|looking at\b|lass(?:en)? (?:mich|uns mal)\b|ich (?:schaue|werde"
    r"|prüfe|sehe)\b|让我|我来|我先|接下来|现在我)",
    FLAGS,
)
PROGRESS = Cue(
    r"^(?:all )?(?:\w+ ){0,3}(?:done|complete[d]?|finished|committed|clean|pass(?:es|ed)?"
    r"|ready|green)\b[^,;]{0,40}$",
    r"\b(?:all|everything) (?:checks|tests|clean|committed|done|works|good)\b|\b(?:summary"
    r"|progress|next steps?|remaining|so far|status)\b",
    r"\b(?:step|phase|task|part|milestone|[a-z]{2,4})-?\s?\d+(?:\s?[-–]\s?[a-z]*\d+)? (?:is "
    r"|are )?(?:complete|done|finished)",
    r"\b(?:want|would you like|do you want) me to\b|\bready (?:to|for|when)\b|\blet me know\b"
    r"|^\s*(?:added|created|updated|removed|renamed|moved|saved) \S+$",
    r"\bunused\b|\buncommitted\b|\bdown from \d+|\b\d+ lines?\b|\blines? \d+|\(~?\d+ lines?",
)
PROPOSAL = Cue(
    r"\b(?:propos\w+|suggest\w*|benefits|advantages|option [a-d1-4]\b|pros?:|cons?:"
    r"|could (?:be|use|also|just)|would be|might|maybe|perhaps|alternativ\w+)",
    r"\b(?:i (?:think|guess|feel|suppose|believe|assume)|probably|not sure|possibly|seems?"
    r"|kind of|sort of|i have a feeling|iirc|iiuc)\b",
    r"\b(?:vielleicht|vermutlich|eventuell|könnte|glaube|denke)\b|也许|可能|大概|或许|好像"
    r"|我觉得|建议",
)
ERRAND = Cue(
    r"^(?:please |can you |could you |pls |now |go |then )*(?:read|look|check|continue|start"
    r"|show|tell|give|explain|investigate|create|write|commit|run|open|try|"
    r"proceed|propose|suggest|summari[sz]e|find|list|do|analy[sz]e|review|see|implement|tackle"
    r"|revert|move|make|add|fix|update|let'?s tackle)\b",
    r"\bi want you to (?:do|read|look|check|give|provide|write|go)\b|^(?:let'?s"
    r"|we need to) (?:tackle|do|start|continue|look)\b|\bprovide me\b|\btell me\b|\bgive me\b",
    r"^(?:bitte )?(?:lies|schau|prüfe|zeig|erstelle|schreib|mach)\b|^请?(?:看|读|检查|继续"
    r"|创建|写|运行|帮我)",
)
PLEASANTRY = Cue(
    r"\b(?:thanks?|thank you|thx|cheers|congrats|congratulations|good luck|best of luck"
    r"|take care|good ?bye|bye|see (?:you|ya)|talk (?:to you )?(?:soon|later)|ttyl|"
    r"have fun|have a (?:great|good|nice|lovely)|no problem|no worries|you'?re welcome"
    r"|my pleasure|keep (?:me posted|it up|up the)|fingers crossed|"
    r"appreciate|good to (?:hear|see|know)|great to (?:hear|see)|glad to|happy for you"
    r"|proud of you|sorry to hear|catch up|how are you|long time no)\b",
    r"\b(?:danke|vielen dank|tschüss|gern geschehen|viel erfolg|schönen tag|bis bald|hallo"
    r"|moin)\b|谢谢|感谢|再见|你好|不客气|辛苦|祝你|加油|恭喜",
)
EXCLAIM = re.compile(
    r"^(?:wow|cool|awesome|nice|great|amazing|fantastic|wonderful|that'?s (?:so |really "
    r"|such )?(?:\w+)[!,.]|that (?:is|sounds|must)|sounds|looks (?:so |really )?\w+|haha|lol"
    r"|aw+|oh|ooh|yay|omg|whoa|"
    r"sure|definitely|absolutely|totally|agreed|for sure|of course|exactly|sorry|hey|hi|hello"
    r"|jesus|damn|super|toll|klasse|genau|太好了|真棒|哈哈|厉害|好棒)(?![\w'])",
    FLAGS,
)
SECOND = re.compile(
    r"^(?:\w+[,!] )?(?:you|you're|you've|you'll|your|keep|hope|enjoy|let me know|du|dein\w*"
    r"|ihr|你|您)(?!\w)",
    FLAGS,
)

#: A person takes back, doubts or refuses what was said before.
TAKEN_BACK = re.compile(
    r"^(?!(?:good|great|ok|okay|yes|fine|nice|cool|thanks|perfect)\b)"
    r"(?:\w+[,!.]? )?(?:no|nope|nah|wrong|wait|stop|don't|actually|nein|falsch|stopp"
    r"|wtf)\b[,.! ]|\b(?:that'?s|this is) (?:wrong|not right|horrible|terrible|bad|not what)"
    r"|doesn't look right|^不(?:对|是|行)|^错",
    FLAGS,
)

#: A person changes their own mind.
CHANGED_MIND = re.compile(
    r"^actually\b|\b(?:revert|undo|scratch|forget) (?:that|this|it)\b|\b(?:never ?mind"
    r"|on second thought|changed my mind)\b|\bdoch (?:nicht|lieber)\b|还是算了|改主意",
    FLAGS,
)

#: Starts that point at something said before.
POINTING = re.compile(
    r"^(?:(?:and|but|so|then|also|because|yes|yeah|no)[,\s]+)?(?:it|its|it's|that|that's|this"
    r"|these|those|they|they're|them|their|he|she|his|her|both|the (?:same|former|latter|other"
    r"|first|second) ?(?:one)?|"
    r"same|such|which|either|neither|das|dies\w*|es|sie|er|beide[s]?|它|这|那|他|她|两者)(?!\w)",
    FLAGS,
)
#: An answer that says nothing without its question.
ELLIPTIC = re.compile(
    r"^(?:yes|yep|yeah|yup|no|nope|nah|ok|okay|sure|correct|right|exactly|agreed|definitely"
    r"|please do|do (?:it|that|so|both)|go (?:ahead|for it|with (?:it|that|the))|"
    r"(?:the|option|number|variant) ?(?:first|second|third|last|latter|former|[a-d1-4]\b)"
    r"|neither|both|either|can (?:leave|keep)|leave it|keep it|"
    r"ja|nein|genau|mach das|die (?:erste|zweite|letzte)|beide[s]?|nimm|是的?|对|好的?|不用?"
    r"|可以|行|第[一二三]个|就这样)(?!\w)",
    FLAGS,
)
#: A list line that tells what is still to be done.
TO_DO = re.compile(
    r"^(?:add|remove|replace|take|use|create|update|keep|handle|move|make|call|change|set"
    r"|write|fix|delete|rename|extract|implement|show|get|put|build|check|find|read|run|"
    r"start|continue|test|save|store|pass|expose|execute|in \S+, if)\b"
    r"|^`?\w+(?:\(\))?`? (?:returns|adds|checks)\b",
    FLAGS,
)
#: An agent reports a piece of work without a subject: true, and of little use later.
REPORT = re.compile(
    r"^(?:added|created|updated|removed|moved|renamed|saved|reduced|deleted|cleaned"
    r"|consolidated|extracted|split|fixed (?!by|in\b)|hinzugefügt|entfernt|已(?:添加|删除"
    r"|更新))\b",
    FLAGS,
)
#: Words that name a thing of the talk, not of the world: they need to know what the talk was about.
GENERIC = re.compile(
    r"^(?:(?:the|this|these|my|our|key|main|only|real) )+(?:\w+ )?(?:fix|issue|problem|bug"
    r"|approach|plan|flow|pattern|change|idea|solution|strategy|way|cause|reason|error|gap"
    r"|process)s?\b"
    r"|^changes\b|^(?:if )?(?:you|i|we)\b|^(?:the )?(?:fix|flow|plan|approach)\b"
    r"|^die (?:lösung|ursache)|^(?:问题|原因|方案)",
    FLAGS,
)
#: Things pointed at that the sentence does not name.
UNNAMED = re.compile(
    r"\b(?:those|these|that) (?!is\b|are\b|was\b|we\b|you\b|i\b|the\b|it\b)\w+|\bthe (?:file"
    r"|rest|first|second|other|latter) one\b",
    FLAGS,
)
#: A verb whose object stands in the question before.
UNNAMED_OBJECT = re.compile(r"\b\w+s (?:it|them)\b", FLAGS)
#: A question that asks for a choice of substance, not for leave to go on.
CHOICE = Cue(
    r"\b(?:should|shall|do|would|can|could) (?:we|i|it|they|the|you prefer|you want (?!me))\b"
    r"|\bor\b|\bwhich\b|\bwhat (?:should|about|if)\b|\binstead\b|\bprefer\b",
    r"\b(?:sollen|sollte|soll|wollen) (?:wir|ich|es)\b|\boder\b|\bwelche[rs]?\b|要不要|还是"
    r"|是否|应该|哪个|用哪",
)
GO_ON = Cue(
    r"\b(?:continue|proceed|begin|start|go ahead|go on|move on|commit|stop here|ready"
    r"|want me to|next)\b",
    r"\b(?:weitermachen|anfangen|loslegen|fortfahren)\b|继续|开始|提交",
)
TAG_QUESTION = re.compile(
    r"[,，]\s*(?:no|right|correct|isn't it|don't you think|oder|nicht wahr|ne|对吧|是吧|不是吗"
    r"|对吗)\s*[?？]+$",
    FLAGS,
)
QUESTION = re.compile(
    r"[?？]\W{0,40}$|吗[。!！]?$|^(?:(?:so+|and|but|ok|wait|well|hm+)[,\s]+)*(?:what|why|how|where"
    r"|who|whose|when(?= (?:do|did|is|are|will|can))|which(?= (?:one|of))|is (?:it|there|this"
    r"|that)|"
    r"are (?:we|you|there|they)|do (?:we|you|i)|does|did (?:you|we|i)|can (?:you|we|i)"
    r"|could (?:you|we|i)|would (?:you|it)|should (?:we|i)|any)\b(?![^.]*[.!]$)",
    FLAGS,
)


def classes(text: str) -> list[str]:
    """Return the classes that a sentence shows, the strongest first."""
    return [name for name, pattern in CLASSES.items() if pattern.search(text)]


def is_question(text: str) -> bool:
    """Return whether a sentence asks; a statement with a tag (`..., right?`) does not."""
    return bool(QUESTION.search(text)) and not TAG_QUESTION.search(text)


def is_narration(text: str) -> bool:
    """Return whether an agent only says what it is about to do, or that it has read something."""
    rest = OPENER.sub("", text)
    return not rest.strip(" .!:…") or bool(NARRATION.match(rest))
