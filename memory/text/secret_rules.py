"""The shapes of secrets, as tables: a literal that must be there, and the pattern that is sure.

A pattern's named group is what is taken out. Every pattern starts at a fixed edge and repeats
single classes only, so that its time grows with the text and not faster. Knows nothing about what
is done with a find.
"""

from __future__ import annotations

from memory.text.patterns import late


class Rule:
    """One shape, and by `check` what the value must be, apart from having it.

    shape: no placeholder; random, header, cookie, case: looks made by a machine, each in its own
    way; chosen: looks like a password of a person's; pem: holds key material; filled: anything but
    a variable; sure: anything.
    """

    # No dataclass: importing those costs more than reading a prompt.
    __slots__ = ("name", "pattern", "check")

    def __init__(self, name: str, pattern: str, check: str = "shape") -> None:
        self.name = name
        self.pattern = late(pattern)
        self.check = check


#: Characters of the shortest word in which a token with a head of its own is looked for: xoxb- and
# ten more.
WORD_CHARS_MIN = 15


def _rule(name: str, pattern: str, check: str = "shape") -> Rule:
    return Rule(name, pattern, check)


def _token(name: str, head: str, body: str, check: str = "shape") -> Rule:
    """Make the rule of a token that is known by its first characters."""
    return _rule(name, f"(?<![A-Za-z0-9_])(?P<value>(?:{head}){body})", check)


# ruff: noqa: E501 - one shape a line
# name, anchors (lower case), head, body, check
_TOKENS: tuple[tuple[str, str, str, str, str], ...] = (
    ("aws_access_key", "akia asia abia acca", "AKIA|ASIA|ABIA|ACCA", r"[A-Z0-9]{16}(?![A-Z0-9])", ""),
    ("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", "gh[pousr]_", r"[A-Za-z0-9]{20,255}", ""),
    ("github_token", "github_pat_", "github_pat_", r"\w{20,255}", ""),
    ("gitlab_token", "glpat- gldt- glptt- glrt- glsoat- glcbt- glft- glimt- gloas-",
     "gl(?:pat|dt|ptt|rt|soat|cbt|ft|imt|oas)-", r"[\w\-.]{16,255}", ""),
    ("anthropic_key", "sk-ant-", "sk-ant-", r"[\w\-]{16,255}", ""),
    ("openai_key", "sk-", "sk-(?:proj-|svcacct-|admin-|or-v1-|or-|lf-)?", r"[\w\-]{20,255}", "random"),
    ("slack_token", "xox", "xox[abcdeoprs](?:\\.xox[bp])?-", r"[\w\-]{10,255}", ""),
    ("slack_token", "xapp-", "xapp-", r"\d-[\w\-]{10,255}", ""),
    ("google_key", "aiza", "AIza", r"[\w\-]{30,45}", ""),
    ("google_token", "ya29.", "ya29\\.", r"[\w\-.]{20,2000}", ""),
    ("google_secret", "gocspx-", "GOCSPX-", r"[\w\-]{20,60}", ""),
    ("google_token", "1//0", "1//0", r"[\w\-]{30,200}", "random"),
    ("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", "[sr]k_(?:live|test)_", r"[A-Za-z0-9]{10,255}", ""),
    ("webhook_secret", "whsec_", "whsec_", r"[\w+/=\-]{20,255}", ""),
    ("twilio_key", "sk", "SK", r"[0-9a-f]{32}(?![0-9A-Za-z])", ""),
    ("sendgrid_key", "sg.", "SG\\.", r"[\w\-]{16,64}\.[\w\-]{16,64}", ""),
    ("mailgun_key", "key-", "key-", r"[0-9a-f]{32}(?![0-9A-Za-z])", ""),
    ("mailchimp_key", "-us", "", r"[0-9a-f]{32}-us\d{1,2}(?!\w)", ""),
    ("npm_token", "npm_", "npm_", r"[A-Za-z0-9]{30,255}", ""),
    ("pypi_token", "pypi-", "pypi-", r"[\w\-]{32,255}", "random"),
    ("rubygems_key", "rubygems_", "rubygems_", r"[0-9a-f]{32,64}", ""),
    ("huggingface_token", "hf_ api_org_", "hf_|api_org_", r"[A-Za-z0-9]{20,60}", "case"),
    ("replicate_token", "r8_", "r8_", r"[A-Za-z0-9]{30,60}", ""),
    ("groq_key", "gsk_", "gsk_", r"[A-Za-z0-9]{20,80}", ""),
    ("xai_key", "xai- pplx-", "xai-|pplx-", r"[A-Za-z0-9]{30,120}", ""),
    ("databricks_token", "dapi", "dapi", r"[0-9a-f]{32}(?:-\d)?(?!\w)", ""),
    ("digitalocean_token", "_v1_", "do[por]_v1_", r"[0-9a-f]{40,64}", ""),
    ("heroku_key", "hrku-", "HRKU-", r"[\w\-]{20,80}", ""),
    ("netlify_token", "nfp_", "nfp_", r"[A-Za-z0-9]{30,60}", ""),
    ("linear_key", "lin_api_ lin_oauth_", "lin_(?:api|oauth)_", r"[A-Za-z0-9]{20,80}", ""),
    ("notion_token", "ntn_ secret_", "ntn_|secret_", r"[A-Za-z0-9]{40,60}", ""),
    ("figma_token", "figd_", "figd_", r"[\w\-]{20,80}", ""),
    ("airtable_token", "pat", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{40,64}", ""),
    ("atlassian_token", "atatt3 atbb", "ATATT3|ATBB", r"[\w=\-]{20,255}", ""),
    ("shopify_token", "shpat_ shpca_ shppa_ shpss_", "shp(?:at|ca|pa|ss)_", r"[0-9a-fA-F]{32}", ""),
    ("square_token", "sq0", "sq0(?:atp|csp|idp)-", r"[\w\-]{20,60}", ""),
    ("facebook_token", "eaac", "EAAC[A-Z]", r"[A-Za-z0-9]{30,255}", ""),
    ("telegram_token", ":aa", "", r"\d{8,10}:AA[\w\-]{30,40}", ""),
    ("grafana_token", "glc_ glsa_", "glc_|glsa_", r"[\w+/=\-]{20,400}", ""),
    ("newrelic_key", "nrak-", "NRAK-", r"[A-Z0-9]{20,40}", ""),
    ("sentry_token", "sntrys_ sntryu_", "sntry[su]_", r"[\w+/=\-]{20,400}", ""),
    ("vault_token", "hvs. hvb.", "hv[sb]\\.", r"[\w\-]{20,255}", ""),
    ("terraform_token", ".atlasv1.", "", r"[A-Za-z0-9]{14}\.atlasv1\.[\w\-]{40,80}", ""),
    ("doppler_token", "dp.", "dp\\.(?:pt|st|ct|sa|scim|audit)\\.", r"[\w.\-]{20,80}", ""),
    ("pulumi_token", "pul-", "pul-", r"[0-9a-f]{40}", ""),
    ("planetscale_token", "pscale_", "pscale_(?:tkn|pw|oauth)_", r"[\w.\-=]{20,80}", ""),
    ("supabase_key", "sbp_ sb_secret_", "sbp_|sb_secret_", r"[\w\-]{20,80}", ""),
    ("docker_token", "dckr_pat_ dckr_oat_", "dckr_[po]at_", r"[\w\-]{20,60}", ""),
    ("tailscale_key", "tskey-", "tskey-", r"[\w\-]{16,80}", ""),
    ("fly_token", "fm1 fm2_", "fm[12]_|fm1[ar]_", r"[\w+/=,\-]{30,2000}", ""),
    ("buildkite_token", "bkua_", "bkua_", r"[0-9a-f]{40}", ""),
    ("circleci_token", "ccipat_ ccipr", "CCIP(?:AT|RJ)_", r"\w{20,120}", ""),
    ("azure_secret", "8q~", "", r"[\w~.\-]{3}8Q~[\w~.\-]{31,37}", ""),
    ("age_key", "age-secret-key-1", "AGE-SECRET-KEY-1", r"[0-9A-Z]{40,80}", ""),
    ("argus_key", "argus_", "argus_", r"[\w\-]{20,100}", "case"),
)  # fmt: skip

_PEM = (
    r"(?P<value>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\\+[nr]|[\s\"'+>|,]|[A-Za-z0-9+/=]{16,}|(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{0,200})*"
    r"[A-Za-z0-9+/=]{0,76}(?:\\+[nr]|[\s\"'+>|,]){0,8}(?:-----END [A-Z0-9 ]{0,40}-----)?)"
)
_HEADER_END = r"[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}"

_FLAG_ANCHORS = "--pass -password --token -token --api --secret -secret"
_FLAG = (
    r"(?<=[\s`\"'\[])--(?:password|passwd|pass|token|api[_\-]?key|secret|[a-z]{1,12}-(?:password|token|secret))"
    r"(?:=|[ ]{1,3})"
)
# "Password" in tongues whose word does not begin like the English one.
_PASSWORD_WORDS = (
    "密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|contraseña|contrasena|mot de passe|mots de passe|senha|palavra-passe|"
    "пароль|hasło|haslo|wachtwoord|lösenord|passord|adgangskode|salasana|heslo|jelszó|parolă|şifre|parola|mật khẩu|"
    "kata sandi|पासवर्ड|كلمة المرور|كلمة السر|סיסמה|סיסמא|รหัสผ่าน|κωδικός|лозинка|lozinka|slaptažodis"
)
_WORD_ANCHORS = (
    "密码 密碼 口令 パスワード 暗証番号 비밀번호 암호 contraseña contrasena passe senha пароль hasło haslo wachtwoord lösenord "
    "passord adgangskode salasana heslo jelszó parolă şifre parola khẩu sandi पासवर्ड المرور السر סיסמה סיסמא "
    "รหัสผ่าน κωδικός лозинка lozinka slaptažodis"
)

_API_KEY = _rule(
    "api_key",
    r"(?i)\b(?:api|access|secret|auth|private)[ _\-]?(?:key|token)s?\s{0,3}(?:is\s|was\s|:|=)?\s{0,3}[\"'`]?"
    r"(?P<value>[A-Za-z0-9]{32,128})(?![A-Za-z0-9])",
    "random",
)

# Shapes known by what stands around them: gate, anchors, rule. The larger shape comes first.
_PLACES: tuple[tuple[str, str, Rule], ...] = (
    ("-----", "-----begin", _rule("private_key", _PEM, "pem")),
    ("", "private-lines:", _rule(
        "private_key", r"Private-Lines: \d+\s+(?P<value>(?:[A-Za-z0-9+/=]{8,76}\s+)+)")),
    ("", "akia asia", _rule(
        "aws_secret_key",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}[\s:,;\"'|/]{1,20}"
        r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")),
    ("/", "hooks.slack.com", _rule(
        "slack_webhook",
        r"hooks\.slack\.com/(?P<value>(?:services|workflows|triggers)/[\w/+\-]{16,200})")),
    ("/", "/api/webhooks/", _rule(
        "discord_webhook", r"discord(?:app)?\.com/api/webhooks/(?P<value>\d{10,24}/[\w\-]{20,100})")),
    ("/", "webhook.office.com", _rule(
        "teams_webhook", r"webhook\.office\.com/(?P<value>[\w@/\-]{20,300})")),
    ("", "discord", _rule(
        "discord_token",
        r"(?<![\w.\-])(?P<value>[MNO][\w\-]{22,28}\.[\w\-]{6}\.[\w\-]{27,45})(?![\w\-])")),
    ("", "eyj", _rule(
        "jwt",
        r"(?<![\w\-])(?P<value>eyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]{4,}={0,2})?(?:\.[\w\-]+){0,2})")),
    ("/", "://", _rule(
        "url_password",
        r"(?<=://)[^\s:/@?#\"'<>`]{0,100}:(?P<value>[^\s/\"'<>`]{1,200})@", "filled")),
    ("/", "://", _rule("url_token", r"(?<=://)(?P<value>[A-Za-z0-9_\-]{20,120})@", "random")),
    ("=", "accountkey= accesskey=", _rule(
        "azure_key", r"(?i)(?:Account|SharedAccess|Access)Key=(?P<value>[A-Za-z0-9+/=]{16,200})",
        "random")),
    ("=", "sig=", _rule(
        "signed_url", r"(?<=[?&])sig=(?P<value>[A-Za-z0-9%+/=_\-]{20,200})", "random")),
    ("=", "x-amz- x-goog-", _rule(
        "signed_url",
        r"(?i)X-(?:Amz|Goog)-(?:Signature|Security-Token|Credential)="
        r"(?P<value>[^\s&\"'<>]{16,3000})")),
    ("", "authorization", _rule(
        "authorization",
        rf"(?i)\bauthorization{_HEADER_END}(?:bearer|basic|token|apikey|api-key|ssws)\s{{1,4}}"
        r"(?P<value>[^\s\"'\\,;]{6,4000})", "header")),
    ("", "authorization", _rule(
        "authorization",
        rf"(?i)\bauthorization{_HEADER_END}(?:digest|negotiate|aws4-hmac-sha256)\s{{1,4}}"
        r"(?P<value>[^\r\n]{6,4000})", "random")),
    ("", "authorization", _rule(
        "authorization", rf"(?i)\bauthorization{_HEADER_END}(?P<value>[^\s\"'\\,;]{{12,4000}})",
        "random")),
    ("", "bearer", _rule(
        "bearer_token", r"(?i)\bbearer\s{1,4}(?P<value>[A-Za-z0-9._~+/=\-]{12,4000})", "random")),
    ("=", "basic", _rule(
        "basic_auth", r"\b[Bb]asic\s{1,4}(?P<value>[A-Za-z0-9+/]{8,400}={1,2})(?!\w)", "random")),
    ("=", "cookie", _rule(
        "cookie",
        rf"(?i)\bcookie{_HEADER_END}(?P<value>[\w.\-]{{1,64}}=[^\s;\"'\\]{{1,4000}}"
        r"(?:;\s?[\w.\-]{1,64}(?:=[^\s;\"'\\]{0,4000})?){0,100})", "cookie")),
    ("=", "sessionid= phpsessid= jsessionid= connect.sid= csrftoken= _session=", _rule(
        "cookie",
        r"(?i)(?:sessionid|phpsessid|jsessionid|connect\.sid|csrftoken|_session)="
        r"(?P<value>[^\s;\"'&,<>]{10,4000})", "random")),
    (" -", "curl wget http", _rule(
        "basic_auth",
        r"\b(?:curl|wget|https?)\b[^\n|;]{0,100}?\s(?:-u|--user|-a)[ =]{1,2}[\"']?[^\s:\"']{1,80}:"
        r"(?P<value>[^\s\"'/]{3,200})")),
    (" -", "login", _rule(
        "password",
        r"\b(?:docker|podman|buildah|skopeo|helm|nerdctl|oras|az|cf|oc)\b[^\n|;&]{0,60}?\blogin\b[^\n|;&]{0,200}?"
        r"\s(?:-p|--password)[ =]{1,2}[\"']?(?P<value>[^\s\"'\-][^\s\"']{2,300})")),
    (" -", "redis-cli valkey-cli", _rule(
        "password",
        r"\b(?:redis|valkey)-cli\b[^\n|;&]{0,200}?\s(?:-a|--pass)[ =]{1,2}[\"']?(?P<value>[^\s\"'\-][^\s\"']{2,300})")),
    (" -", "htpasswd", _rule(
        "password",
        r"\bhtpasswd[ \t]{1,4}-(?=\w{0,6}b)(?!\w{0,6}n)\w{1,6}[ \t]{1,4}(?:-\w{1,6}[ \t]{1,4}){0,4}"
        r"[^\s\-]\S{0,200}[ \t]{1,4}\S{1,100}[ \t]{1,4}[\"']?(?P<value>[^\s\"'|;&<>]{3,200})")),
    (" -", "htpasswd", _rule(
        "password",
        r"\bhtpasswd[ \t]{1,4}-(?=\w{0,6}b)(?=\w{0,6}n)\w{1,6}[ \t]{1,4}(?:-\w{1,6}[ \t]{1,4}){0,4}"
        r"[^\s\-]\S{0,100}[ \t]{1,4}[\"']?(?P<value>[^\s\"'|;&<>]{3,200})")),
    (" -", "sshpass", _rule(
        "password", r"\bsshpass\s{1,4}-p\s{0,4}[\"']?(?P<value>[^\s\"']{3,200})")),
    (" -", "mysql", _rule(
        "password",
        r"\bmysql(?:dump|admin)?\b[^\n|;&]{0,100}?\s-p(?P<value>[^\s\"'\-][^\s\"']{2,200})")),
    (" -", "mysql mariadb", _rule(
        "password",
        r"\b(?:mysql|mariadb)(?:-?dump|-?admin)?\b[^\n|;&]{0,100}?\s(?:-p[ ]|--password[ =])[\"']?"
        r"(?P<value>[^\s\"'\-][^\s\"'|;&<>]{3,200})", "chosen")),
    (" -", _FLAG_ANCHORS, _rule(
        "flag_value",
        rf"{_FLAG}[\"']?(?P<value>[^\s\"'<>$()\[\]{{}}\-][^\s\"'<>()\[\]{{}}]{{3,300}})", "random")),
    (" -", _FLAG_ANCHORS, _rule(
        "flag_value",
        rf"{_FLAG}(?P<value>[^\s\"'`<>$()\[\]{{}}\-][^\s\"'`<>()\[\]{{}}]{{5,300}})", "chosen")),
    # Words alone, where no prose looks so: in quotes, or with the next flag behind them.
    (" -", _FLAG_ANCHORS, _rule(
        "flag_value", rf"{_FLAG}(?P<q>[\"'])(?P<value>[^\n\"'`$<]{{4,200}})(?P=q)")),
    (" -", _FLAG_ANCHORS, _rule(
        "flag_value", rf"{_FLAG}(?P<value>[^\s\"'`<>$()\[\]{{}}\-]\S{{3,200}})(?=[ ]--?\w)")),
    ("", "machine", _rule(
        "password",
        r"\bmachine\s{1,4}\S{1,200}\s{1,4}login\s{1,4}\S{1,200}\s{1,4}password\s{1,4}"
        r"(?P<value>\S{3,200})")),
    ("", ":5432: :*:", _rule(
        "password",
        r"(?m)^[\w.*\-]{1,120}:(?:5432|\*):[\w*\-]{1,64}:[\w*\-]{1,64}:(?P<value>\S{3,200})$")),
    ("$", "$2a$ $2b$ $2y$", _rule(
        "password_hash", r"(?P<value>\$2[aby]\$\d\d\$[./A-Za-z0-9]{53})", "sure")),
    ("$", "pbkdf2_ $argon2", _rule(
        "password_hash",
        r"(?P<value>(?:pbkdf2_sha\d{1,3}|\$argon2(?:id|i|d))\$[\w$=,+/.\-]{30,400})", "sure")),
    ("</", "</", _rule(
        "xml_secret",
        r"(?i)<(?:password|passwd|secret|token|api_?key|client_?secret)>"
        r"(?P<value>[^<\s]{3,300})</")),
    ("", "password passphrase passwort kennwort secret token", _rule(
        "password",
        r"(?i)\b(?:password|passwd|passphrase|passwort|kennwort|secret|token)\s{1,3}"
        r"(?:is|was|ist|lautet)\s{0,2}:?\s{1,3}[\"'`“](?P<value>[^\"'`“”\s]{4,100})[\"'`”]")),
    ("", "password passwd passphrase passwort kennwort secret token pwd", _rule(
        "password",
        r"(?i)\b(?:password|passwd|passphrase|passwort|kennwort|pwd|secret|token)\s{1,3}"
        r"(?:is|was|will be|set to|to|ist|lautet)(?:\s{0,2}:)?\s{1,3}(?:now\s)?(?P<value>[^\s\"'`“”<>()\[\]{},;]{8,100})", "chosen")),
    ("", _WORD_ANCHORS, _rule(
        "password",
        rf"(?i)(?<![a-z])(?:{_PASSWORD_WORDS})[\"'”」]?\s{{0,3}}(?::|=|는|은|は|是|为|為|es\b|é\b|est\b|is\b)\s{{0,3}}:?\s{{0,3}}"
        r"[\"'`“「]?(?P<value>[!-~]{4,100})", "typed")),
    *((gate, gate.split(" ")[-1], _API_KEY) for gate in (
        "api key", "api-key", "api token", "access key", "access token", "auth token", "auth key", "secret key",
        "secret token", "private key", "private token")),
    ("", "pass\" pass' pass\\ pw\" pw' pw\\", _rule(
        "password",
        r"(?i)(?P<q>\\{0,3}[\"'])(?:pass|pw)(?P=q)\s{0,4}(?::|=>|=)\s{0,4}(?P=q)(?P<value>[^\"'\\\n\s]{4,200})(?P=q)", "named")),
    ("", "pass= pass: pw= pw:", _rule(
        "password",
        r"(?i)(?<![a-z0-9_])(?:pass|pw)(?:=|:[ ]?)[\"']?(?P<value>[^\s\"'`,;<>(){}\[\]&|\\]{6,200})", "chosen")),
)  # fmt: skip

_KEYS = (
    "password|passwd|passwort|kennwort|passphrase|pwd|_pass|client[_-]?secret|secret|token|api[ _-]?key|access[_-]?key|"
    "private[_-]?key|encryption[_-]?key|signing[_-]?key|auth[_-]?key|master[_-]?key|account[_-]?key|deploy[_-]?key|"
    "credentials?|connection[_-]?string|_auth|license[_-]?key"
)
#: `NAME = value` in code, settings, JSON, YAML and headers, for names that promise a secret.
ASSIGNMENT = _rule(
    "assigned_secret",
    rf"(?i)(?P<key>{_KEYS})(?P<tail>[\w\-]{{0,24}})\\{{0,3}}(?:[\"'`]|%22)?\]?\s{{0,4}}(?P<sign>:=|=>|=|:|%3[DA])(?!=)(?:%20|%22|\s){{0,4}}"
    r"(?:[rbuf]{0,2}(?P<q>\\{0,3}[\"'`])(?P<quoted>(?:(?!(?P=q))[^\n]){3,300})(?P=q)"
    r"|(?P<bare>[^\s\"'`,;<>(){}\[\]&|\\]{4,300}))",
)
_ASSIGNED = "passw passphrase kennwort pwd _pass secret token key credential connection _auth"

#: What a name goes on with when it is about a secret, not the secret: token_count, secret_name,
# password_field.
BENIGN_TAIL = late(
    r"(?i)[_\-]?(?:s|count|limit|max|min|len|length|url|uri|endpoint|id|ids|name|names|type|types|file|path|dir|field|"
    r"policy|expir\w*|ttl|timeout|age|size|budget|usage|used|hash\w*|header|prefix|suffix|version|rotation|env|var|reset|"
    r"required|strength|regex|hint|label|format|valid\w*|manager|store|provider|ref|arn|input|output|error|class|"
    r"izer|ize\w*|ized|less|per\w*|_?per_\w+)(?:[_\-]\w*)?$"
)

#: A value that stands for one: documented examples, fillers and words.
PLACEHOLDER = late(
    r"(?i)example|placeholder|redacted|change[_\-]?me|replace[_\-]?me|^your|[_\-<]your|\.\.\.|…|^\W*(.)\1{3,}\W*$|x{6,}|\*{4,}|0{8,}|"
    r"^\W*(?:password|passwd|passwort|secret|token|none|null|nil|true|false|undefined|string|str|text|bytes|optional|"
    r"required|hidden|dummy|todo|tbd|n/?a|insert|enter|my[_\-]?\w*(?:key|token|secret|password))\W*$"
)


def _words_to(table: list[tuple[str, Rule]], anchors: str, rule: Rule) -> None:
    table.extend((anchor, rule) for anchor in anchors.split())


def _token_anchors() -> tuple[tuple[str, Rule], ...]:
    table: list[tuple[str, Rule]] = []
    for name, anchors, head, body, check in _TOKENS:
        _words_to(table, anchors, _token(name, head, body, check or "shape"))
    return tuple(table)


def _place_anchors() -> dict[str, tuple[tuple[str, Rule], ...]]:
    table: dict[str, list[tuple[str, Rule]]] = {}
    for gate, anchors, rule in _PLACES:
        _words_to(table.setdefault(gate, []), anchors, rule)
    _words_to(table[""], _ASSIGNED, ASSIGNMENT)
    return {gate: tuple(rows) for gate, rows in table.items()}


#: (literal in lower case, rule): looked for in long words only, since no token is short.
TOKEN_ANCHORS = _token_anchors()

#: By a literal that must be there at all: (literal in lower case, rule), in the order in which
# rules run.
PLACE_ANCHORS = _place_anchors()
