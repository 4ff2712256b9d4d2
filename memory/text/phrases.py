"""Phrases by which failures, harness text and orders to an agent are known, as tables.

All matched at the start of a text but for ORDERS. Knows nothing about what is done with a match.
"""

# ruff: noqa: E501 - one phrase a line reads better than a folded pattern
from __future__ import annotations

from memory.text.patterns import late

_TAIL = r"[\s.·∙:;,\-–|()0-9a-z/\[\]]{0,120}"
_STATUS = (
    r"(?:\d{3}|overloaded(?:_error)?|internal server error|bad gateway|service (?:temporarily )?unavailable|"
    r"gateway time-?out|too many requests|unauthorized|forbidden|not found|request timed out|connection error|"
    r"rate limit(?:ed| reached| exceeded)?)"
)

#: Errors that are the whole text, with at most a hint or a time after them.
ERROR_WHOLE = late(
    r"(?is)(?:"
    r"no response requested\.?|prompt is too long.{0,80}|"
    r"(?:your )?credit balance is too low.{0,160}|"
    r"invalid api key\b.{0,80}|(?:incorrect|invalid) api key provided.{0,200}|"
    r"oauth token (?:revoked|has (?:expired|been revoked)).{0,80}|please run /login.{0,80}|"
    r"you(?:'ve| have)? (?:hit|reached) your(?: [\w\-]+){0,2} limit\b.{0,200}|"
    r"(?:claude|your|\d+-hour|weekly|opus|session|daily)(?: [\w\-]+){0,2} limit (?:reached|will reset)\b.{0,200}|"
    r"(?:request|api request|the request) (?:was aborted|timed out|timeout|cancelled)\.?.{0,40}|"
    rf"(?:connection|network|server|internal(?: server)?) error\.?(?: \(.{{0,80}}\))?|{_STATUS}\.?|"
    r"(?:error:? )?\d{3}[ :\-–]{1,3}(?:bad gateway|service (?:temporarily )?unavailable|gateway time-?out|"
    r"internal server error|too many requests|unauthorized|overloaded)\.?.{0,60}|"
    r"repeated \d{3} .{0,40}errors?\.?.{0,60}|fetch failed\.?|socket hang up\.?|terminated\.?|"
    r"(?:the )?(?:server|model|engine) is (?:currently )?overloaded.{0,160}|"
    r"unable to connect to (?:the )?(?:api|anthropic services).{0,200}|"
    r"we(?:'re| are) currently experiencing (?:high demand|issues).{0,200}|"
    r"you exceeded your current quota.{0,240}|rate limit reached for .{0,300}|"
    r"this model's maximum context length is .{0,300}|"
    r"your account does not have access to .{0,160}|"
    r"your organization (?:has been disabled|does not have access).{0,160}|"
    r"the model `[^`]{1,80}` does not exist.{0,120}|"
    r"stream (?:disconnected before completion|error|closed).{0,240}|"
    r"exceeded retry limit, last status.{0,160}|upstream connect error.{0,240}|"
    r"api[- ]?fehler.{0,160}|(?:anfrage|nutzungs|raten)limit (?:erreicht|überschritten).{0,120}|"
    r"zeitüberschreitung (?:der|bei der) anfrage.{0,80}|interner serverfehler\.?|guthaben (?:ist )?zu niedrig.{0,80}|"
    r"erreur (?:de l['’]|d['’])?api.{0,160}|erreur interne du serveur\.?|limite (?:de débit|d['’]utilisation) atteinte.{0,120}|"
    r"délai d['’]attente (?:de la requête )?dépassé.{0,80}|"
    r"error de (?:la )?api.{0,160}|error interno del servidor\.?|límite de (?:uso|velocidad|solicitudes) (?:alcanzado|excedido).{0,120}|"
    r"tiempo de espera agotado.{0,80}|"
    r"api ?(?:错误|錯誤|请求失败|調用失敗|调用失败).{0,120}|请求(?:过于频繁|超时|失败).{0,60}|服务(?:器)?(?:繁忙|内部错误|不可用|暂时不可用).{0,60}|"
    r"(?:已达到|超出)(?:使用|速率|请求).{0,10}(?:上限|限制).{0,40}|"
    r"api ?エラー.{0,120}|(?:リクエスト|接続)が?タイムアウト(?:しました)?.{0,40}|(?:内部)?サーバー(?:内部)?エラー.{0,60}|"
    r"(?:使用量|レート|利用)(?:の)?(?:上限|制限)に(?:達しました|達し).{0,60}"
    r")"
)

#: Errors with a body of any kind after them, unless someone tells a story about them there.
ERROR_HEADS = late(
    r"(?i)(?:"
    r"api error(?: \([^)]{1,120}\))?(?::|\s+[·-])|api error$|error code: \d{3} - |"
    r"(?:litellm|openai|anthropic|httpx|botocore|google\.api_core)(?:\.\w+){0,3}\.?\w*(?:Error|Exception|Exhausted): |"
    r"\{\s*\"(?:type\"\s*:\s*\"error\"|error\"\s*:)|"
    r"unexpected status \d{3}|<html>\s*<head>\s*<title>\s*[45]\d\d|"
    r"(?:http )?error \d{3}:? ?\{"
    r")"
)

#: Words of someone who tells what happened, and is not the error itself.
NARRATIVE = late(
    r"(?i)\b(?:fix(?:ed|es)?|because|caus(?:ed|es)|root cause|resolved|solved|turned out|i (?:have|added|changed|will|'ll)|"
    r"we (?:saw|got|get|hit|added|changed|now|should|need|retry|handle|decided|treat|must)|means|happens|came from|comes from|"
    r"was (?:raised|thrown|returned|due)|is (?:raised|thrown|returned|what|the)|so (?:the|we|i)|when the|after (?:the|we|i)|"
    r"handled|added|answered|configured|documented|stored|defined|should be|log(?:s|ged)?|let me|let's|looks like|seems)\b"
)

_THAT = r"(?:that|this|it|these|those|such|your|the) ?(?:\w+ ){0,3}(?:request|question|task|topic|content|information|material)?"
_ASK = (
    r"(?:help(?: you)?(?: with)?|assist(?: you)?(?: with)?|comply(?: with)?|fulfil?l|continue(?: with)?|engage(?: (?:with|in))?|"
    r"discuss|participate in|respond to|answer|support|do|accommodate|provide|generate|create|produce|write|share|offer|give)"
)
#: What no refusal says: it goes on with the work.
GOES_ON = late(
    r"(?i)\b(?:but (?:i|here|the|we) (?:found|fixed|did|is|can see)|instead i (?:added|used|changed)|root cause)\b"
)

#: Refusals as a whole answer. What is refused must be the request itself, not a step of work.
REFUSALS = late(
    r"(?is)(?:"
    r"(?:(?:i(?:'|’)?m|i am) (?:really |very |so )?sorry,? ?(?:but |, )?|sorry,? (?:but )?|unfortunately,? |i apologi[sz]e,? (?:but )?|as an ai(?: language model| assistant)?,? )"
    r"(?:i (?:can(?:no|')t|can’t|am (?:not able|unable) to|won(?:'|’)t|will not|must decline|don(?:'|’)t feel comfortable)|i(?:'|’)m (?:not able|unable) to)"
    rf"(?: be able to)? ?(?:{_ASK}|with)\b(?! (?:me|us)\b)[^\n]{{0,400}}|"
    r"i (?:can(?:no|')t|can’t|won(?:'|’)t|will not|am (?:not able|unable) to|must decline to) (?:be able to )?"
    rf"(?:help(?: you)? with|assist(?: you)?(?: with)?|comply with|fulfil?l|engage (?:with|in)|participate in) {_THAT}\b[^\n]{{0,400}}|"
    r"i (?:can(?:no|')t|can’t|won(?:'|’)t) (?:help|assist|comply)(?: you)?(?: with (?:that|this|it))?\.?$|"
    r"i (?:can(?:no|')t|can’t|won(?:'|’)t) (?:help|assist)(?: you)? with [^\n]{0,200}\b(?:any|some)thing else\b[^\n]{0,80}|"
    r"i must (?:respectfully )?decline\b[^\n]{0,200}|i(?:'|’)m not (?:comfortable|able to (?:help|assist))[^\n]{0,300}|"
    r"(?:this|that|your) (?:request|content|prompt) (?:violates|goes against|was flagged|may violate)[^\n]{0,300}|"
    r"[^\n]{0,80}is unable to respond to this request, which appears to violate[^\n]{0,300}|"
    r"(?:es )?tut mir (?:sehr )?leid,? (?:aber )?(?:(?:ich|dabei|das|damit|hierbei|diese\w*)\b)[^\n]{0,200}(?:nicht|keine)\b[^\n]{0,200}|"
    r"(?:leider )?(?:dabei|das|damit|hierbei) (?:kann|darf) ich (?:dir |ihnen |leider )*nicht[^\n]{0,200}|"
    r"ich kann (?:dir|ihnen|bei|diese\w*)[^\n]{0,60}(?:anfrage|dabei|damit)[^\n]{0,40} nicht[^\n]{0,160}|"
    r"(?:je suis )?d[ée]sol[ée]e?,? (?:mais )?(?:je ne (?:peux|suis|puis)|il m['’]est impossible)[^\n]{0,300}|"
    r"je ne (?:peux|suis) pas (?:en mesure de |vous |t['’])?(?:aider|répondre|assister)[^\n]{0,300}|"
    r"lo siento,? (?:pero )?no puedo[^\n]{0,300}|no puedo (?:ayudar(?:te|le)?|cumplir|asistir(?:te|le)?|responder)[^\n]{0,30}(?:con |a )(?:eso|esa|esta|este|tu|su)[^\n]{0,200}|"
    r"(?:很?抱歉|对不起|對不起|不好意思)[，,、 ]?.{0,12}(?:无法|無法|不能|不可以|没办法).{0,120}|我(?:无法|無法|不能)(?:提供|协助|協助|帮助|幫助|回答|满足|滿足|处理这|完成此).{0,80}|"
    r"(?:大変)?(?:申し訳(?:ございません|ありません)|すみません|ごめんなさい)(?:が|、|。|けど|けれど).{0,120}(?:できません|できかねます|いたしかねます|お答えできま|対応できま|応じられません).{0,60}|"
    r"(?:その|この|ご)(?:リクエスト|要求|依頼|質問|要望)には?(?:お答え|対応|お応え|応じ).{0,20}(?:できません|かねます|られません).{0,60}"
    r")\s*(?:[^\n]{0,200})$"
)

#: Beginnings after which everything is harness text.
HARNESS_HEADS = (
    ("[SYSTEM NOTIFICATION - NOT USER INPUT]", "system-notification"),
    ("[Request interrupted by user", "interrupted"),
    ("Caveat: The messages below were generated by the user while running local", "local-command-caveat"),
    ("Stop hook feedback", "stop-hook-feedback"),
    ("This session is being continued from a previous conversation that ran out", "continuation"),
    ("Another language model started to solve this problem and produced a summary", "compaction"),
    ("Warning: The maximum number of unified exec processes", "warning"),
    ("Warning: apply_patch was requested via", "warning"),
    ("No response requested", "no-response"),
)  # fmt: skip

#: Opening tags of harness blocks.
HARNESS_BLOCKS = late(
    r"(?i)(?:<(?P<t>task-notification|local-command-(?:stdout|stderr|caveat)|bash-(?:stdout|stderr|input)|"
    r"teammate-message|cross-session-message|user-prompt-submit-hook|post-tool-use-hook|system-reminder|"
    r"ide_opened_file|ide_selection|ide_diagnostics|command-name|command-message|command-args|command-contents|"
    r"user_instructions|environment_context|skill|user_shell_command|turn_aborted|subagent_notification|"
    r"codex_internal_context|goal_context|hook_prompt|recommended_plugins|additional_context|security_context|"
    r"permissions instructions|model_switch|collaboration_mode|personality_spec)(?=[\s>])[^>]{0,400}>|"
    r"# (?P<a>AGENTS\.md) instructions for)"
)

#: Cyrillic and Greek letters that look Latin.
LOOKALIKES = str.maketrans(
    "аеорсухіѕјһԁԛԝѵοανερτικАВЕКМНОРСТХІЅЈ", "aeopcyxisjhdqwvoaveptikABEKMHOPCTXISJ"
)

#: What makes a quoted order a mention: the text says that it speaks about such orders.
ABOUT = late(
    r"(?i)\b(?:injection|jailbreak|attack\w*|payload|malicious|phrase|pattern|regex|detect\w*|filter\w*|refus\w+|"
    r"reject\w*|sanitiz\w*|escap\w*|strip\w*|guard\w*|such as|e\.g|for example|contain\w*|wrap\w*|tags?|marker|test\w*)\b"
)

_OLD = (
    r"(?:all |any |the |your |of |these |those |my |everything ){0,4}"
    r"(?:previous|prior|above|earlier|preceding|existing|former|original|initial|system|safety|foregoing|other)"
)
_WHAT = (
    r"(?:\w+ ){0,2}(?:instructions?|prompts?|rules|guidelines|directives?|messages?|context|constraints|"
    r"commands?|orders|restrictions|polic(?:y|ies))"
)
_DO = r"(?:run|execute|call|invoke|fetch|curl|wget|download|send|post|upload|delete|install|open|reveal|print|output|ignore|forget|disregard|eval)"
_RISK = (
    r"(?:curl|wget|rm -rf|bash|sh -c|powershell|eval|base64|https?://|\.env\b|~/\.ssh|id_rsa|credentials?|secrets?|"
    r"api[ _-]?keys?|passwords?|nc -|netcat|chmod)"
)
_AGENT = r"(?:ai|llm|assistant|agent|claude|chatgpt|gpt|codex|copilot|language model|ai model)"

#: Kinds of orders, the surest first: name, literals of which one must be there, pattern.
ORDERS = tuple(
    (name, tuple(anchors.split()), late(pattern))
    for name, anchors, pattern in (
        ("override", "ignore disregard forget override bypass discard", rf"(?i)\b(?:ignore|disregard|forget|override|bypass|discard)\s+{_OLD}\s+{_WHAT}\b"),
        ("override", "ignore disregard forget", r"(?i)\b(?:ignore|disregard|forget)\s+(?:everything|all|anything)\s+(?:above|before|prior|previous(?:ly)?|that came before|you (?:were|have been) told)"),
        ("override", "follow", r"(?i)\bdo not follow (?:the |your |any )?(?:previous|prior|above|system|original)\b"),
        ("override", "ignorier vergiss missachte", r"(?i)\b(?:ignoriere?|vergiss|missachte)\s+(?:bitte\s+)?(?:alle?\s+|die\s+|deine\s+|sämtliche\s+){0,3}(?:vorherigen|bisherigen|obigen|vorigen|früheren)\b"),
        ("override", "ignore oublie", r"(?i)\b(?:ignore[zr]?|oublie[zr]?)\s+(?:toutes?\s+|tous\s+|les\s+|vos\s+|tes\s+){0,3}(?:instructions?|consignes|règles)\s+(?:précédentes?|antérieures?|ci-dessus)"),
        ("override", "ignora olvida ignore", r"(?i)\b(?:ignora|olvida|ignore)\s+(?:todas?\s+|las\s+|tus\s+|sus\s+){0,3}(?:instrucciones|reglas|indicaciones)\s+(?:anteriores|previas)"),
        ("override", "忽略 无视 無視 忘", r"(?:忽略|无视|無視|忘记|忘掉)(?:所有|全部|之前|先前|以上|上述|前面|的){1,4}(?:指令|指示|提示|规则|命令|说明)"),
        ("override", "無視 忘れ", r"(?:これまで|以前|上記|前)の(?:すべての)?(?:指示|命令|ルール|プロンプト)(?:を|は)(?:すべて)?(?:無視|忘れ)"),
        ("system_tag", "<| inst] sys>>", r"(?i)<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?INST\]|<</?SYS>>"),
        ("system_tag", "system assistant human instruction argus-memory tool_ function_call invoke antml:", r"(?i)</?(?:system|system-reminder|system_prompt|assistant|human|instructions?|argus-memory|tool_use|tool_call|function_calls?|invoke|antml:\w+)(?:\s[^<>]{0,200})?>"),
        ("system_tag", "system developer", r"(?im)^\s{0,8}(?:#{1,4} ?)?\[?(?:system|system message|system prompt|developer message)\]?\s{0,2}:\s{0,4}(?:you|ignore|run|execute|new|from now|override|disregard|call|the (?:assistant|agent))\b"),
        ("tool_call", "arguments input parameters args", r"(?i)\"(?:tool|tool_name|function|name)\"\s{0,4}:\s{0,4}\"(?:bash|shell|execute\w*|run_\w+|exec|terminal|computer|write_file|web_fetch)\"\s{0,4},\s{0,4}\"(?:arguments|input|parameters|args)\""),
        ("addressed", "ai llm assistant agent claude gpt codex copilot language", rf"(?im)(?:^|[.!?:>\"*(\-]\s{{0,3}})(?:dear |hey |attention,? |note (?:to|for) (?:the )?|important[:,] |to (?:the |any |all )?)?(?:the )?{_AGENT}s?(?: assistants?| agents?| models?)?(?: reading this)?\s?[:,]\s{{0,3}}(?:please |you (?:must|should|will|need to) |now |immediately |do not |don't |never ){{0,3}}{_DO}\b"),
        ("addressed", "ai llm assistant agent claude gpt codex copilot language", rf"(?i)\b(?:if you are|any|every|when an|whichever) (?:an? )?{_AGENT}\b[^.\n]{{0,60}}\b(?:you )?(?:must|should|have to|need to|shall) (?:now |first |immediately |always ){{0,2}}{_DO}\b"),
        ("addressed", "you", rf"(?i)\byou (?:must|should|have to|need to|shall|will) (?:now|immediately|at once|first)(?: and \w+)? {_DO}\b"),
        ("addressed", "you", rf"(?i)\byou (?:must|should|have to|need to|shall|will) (?:always |also )?{_DO}\b[^.\n]{{0,80}}{_RISK}"),
        ("role", "you", r"(?i)\byou are (?:now|no longer) (?:DAN\b|in (?:developer|god|debug|admin|jailbreak) mode|an? (?:unrestricted|unfiltered|uncensored)|bound by|restricted|jailbroken)"),
        ("role", "mode", r"(?i)\b(?:enable|enter|activate) (?:developer|god|jailbreak|dan) mode\b"),
        ("secrecy", "user human operator developer", r"(?i)\b(?:do not|don't|never|without) (?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|notify(?:ing)?|mention(?:ing)? (?:this|it) to|reveal(?:ing)? (?:this|it) to|show(?:ing)? (?:this|it) to|ask(?:ing)?) (?:the )?(?:user|human|operator|developer)\b(?=[^\n]{0,40}(?:$|[.!,;\n]))"),
        ("prompt_leak", "prompt instructions", r"(?i)\b(?:reveal|print|repeat|output|show|leak|disclose)\s+(?:me\s+)?(?:all\s+)?(?:your|the)\s+(?:full\s+|entire\s+|hidden\s+|initial\s+)?(?:system prompt|hidden (?:instructions|prompt)|initial instructions)"),
        ("exfiltrate", "http @ .com .net .io .org .xyz .ru .cn", r"(?i)\b(?:send|post|upload|exfiltrate|forward|leak|transmit|pipe|email)\b[^.\n]{0,80}\b(?:secrets?|credentials?|api[ _-]?keys?|tokens?|passwords?|env(?:ironment)? (?:variables?|vars?)|ssh keys?|private keys?|conversation|\.env|id_rsa)\b[^\n]{0,80}?\b(?:to|at)\s+(?:https?://|\S{1,80}@|[\w\-]{1,60}\.(?:com|net|io|org|xyz|ru|cn)\b)"),
        ("exfiltrate", "curl", r"(?i)\bcurl\b[^\n]{0,120}(?:\$\(|`|@)[^\n]{0,40}(?:\.env|id_rsa|\.ssh|\.aws|passwd|credentials|printenv)"),
    )
)  # fmt: skip
