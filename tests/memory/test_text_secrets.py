"""Secrets: sixty shapes go, prose, code and documented examples stay."""

# ruff: noqa: E501 - cases stand one a line
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.text.anchors import may_hold_secret
from memory.text.secret_rules import PLACE_ANCHORS, TOKEN_ANCHORS, Rule
from memory.text.secrets import redact
from tests.growth import GROWTH_MAX, growth

# Built from pieces, so that no scanner takes this file for a leak.
A = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7"
HEX = "0123456789abcdef"
B64 = "MIIEpAIBAAKCAQEAt7Zq1x2Y3w4V5u6T7s8R9q0P"
DASHES = "-" * 5


def pem(kind: str, newline: str = "\n") -> str:
    head, foot = (f"{DASHES}{word} {kind}PRIVATE KEY{DASHES}" for word in ("BEGIN", "END"))
    return newline.join([head, B64 + A[:24], B64[:12] + "==", foot])


# (text around, the secret that must be gone)
SHAPES: list[tuple[str, str]] = [
    ("key {} in use", "AKIA" + "Z7Q2M5N8P1R4T6V9"),
    ("key {}", "ASIA" + "Z7Q2M5N8P1R4T6V9"),
    ("aws_secret_access_key = {}", "wJalr" + A + "/K7MDENG"),
    ("AKIA" + "Z7Q2M5N8P1R4T6V9 {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzQ1zzR2zz"),
    ("push with {}", "ghp_" + A + A[:9]),
    ("{}", "gho_" + A + A[:9]),
    ("{}", "ghs_" + A + A[:9]),
    ("{}", "github_pat_" + "11AB" + A + "_" + A),
    ("{}", "glpat-" + A[:20]),
    ("OPENAI {}", "sk-" + A + A[:21]),
    ("{}", "sk-proj-" + A + "_" + A),
    ("{}", "sk-ant-" + "api03-" + A + "-" + A),
    ("{}", "sk-or-v1-" + HEX * 4),
    ("{}", "xoxb-" + "123456789012-123456789012-" + A[:24]),
    ("{}", "xoxp-" + "1234567890-" + A),
    ("{}", "xapp-" + "1-A0123-456-" + A),
    ("https://hooks.slack.com/services/{}", "T0000ABCD/B0000ABCD/" + A[:24]),
    ("https://discord.com/api/webhooks/{}", "123456789012345678/" + A + A),
    ("https://x.webhook.office.com/webhookb2/{}", HEX + "@" + HEX + "/IncomingWebhook/" + HEX),
    ("{}", "AIza" + "SyD" + A + A[:5]),
    ("{}", "ya29." + "a0AfH6SM" + A),
    ("{}", "GOCSPX-" + A),
    ("{}", "sk_live_" + A),
    ("{}", "rk_test_" + A),
    ("{}", "whsec_" + A),
    ("{}", "SK" + HEX * 2),
    ("TWILIO_AUTH_TOKEN={}", HEX * 2),
    ("{}", "SG." + A[:22] + "." + A + A[:16]),
    ("{}", "key-" + HEX * 2),
    ("{}", HEX * 2 + "-us12"),
    ("//registry.npmjs.org/:_authToken={}", "npm_" + A + A[:9]),
    ("{}", "pypi-" + "AgEIcHlwaS5vcmc" + A + A),
    ("{}", "rubygems_" + HEX * 3),
    ("{}", "hf_" + A + A[:7]),
    ("{}", "r8_" + A + A[:10]),
    ("{}", "gsk_" + A + A),
    ("{}", "dapi" + HEX * 2),
    ("{}", "dop_v1_" + HEX * 4),
    ("{}", "lin_api_" + A + A[:13]),
    ("{}", "ntn_" + A + A[:19]),
    ("{}", "figd_" + A),
    ("{}", "shpat_" + HEX * 2),
    ("{}", "ATATT3x" + A + A),
    ("bot {}", "1234567890:AA" + "H" + A + A[:6]),
    ("{}", "glsa_" + A + "_" + HEX[:8]),
    ("{}", "NRAK-" + "Z7Q2M5N8P1R4T6V9Z7Q2M5N8P1R"),
    ("{}", "hvs." + "CAESI" + A),
    ("{}", A[:14] + ".atlasv1." + A + A + A[:10]),
    ("{}", "dckr_pat_" + A),
    ("{}", "tskey-" + "auth-" + A),
    ("AccountName=x;AccountKey={};Suffix=y", B64 + A + "=="),
    ("Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey={}", B64 + "="),
    ("{}", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NSJ9." + A),
    ("{}", pem("RSA ")),
    ("{}", pem("OPENSSH ")),
    ("{}", pem("", "\\n")),
    ('{{"type": "service_account", "private_key": "{}"}}', pem("", "\\n")),
    ("postgres://app:{}@db.example.com:5432/app", "s3cr3t-Pa55"),
    ("redis://:{}@localhost:6379", "hunter22"),
    ("https://admin:{}@grafana.local/", "correcthorse"),
    ("https://{}@sentry.io/42", HEX * 2),
    ("Authorization: Bearer {}", A),
    ('-H "authorization: Basic {}"', "dXNlcjpwYXNz"),
    ("X-Api-Key: {}", A),
    ("Set-Cookie: sessionid={}; Path=/; HttpOnly", A),
    ("Cookie: theme=dark; session={}", A),
    ("DB_PASSWORD={}", "correcthorse"),
    ("password: {}", "hunter2!"),
    ('"password": "{}"', "hunter2"),
    ('{{\\"client_secret\\": \\"{}\\"}}', "tops3cret"),
    ("api_key = '{}'", A),
    ("the password is `{}`", "hunter2"),
    ("curl -u admin:{} http://localhost", "hunter2"),
    ("mysql -u root -p{} app", "hunter2"),
    ("tool --token {} run", A),
    ("<password>{}</password>", "hunter2"),
    ("machine x.org login me password {}", "hunter2"),
    ("https://s3.example.com/a?X-Amz-Signature={}&x=1", HEX * 4),
    ("{}", "$2b$12$" + (A + A)[:53]),
    ("{}", "argus_" + A + A[:10]),
    ("tool login --password {} --force", "correcthorse"),
    ("tool --password '{}' run", "correct-horse"),
    ("tool --password {}", "Tr0ub4dor&3"),
    ("`tool --token={}`", "Tr0ub4dor"),
    ("['run', '--password', '{}'] and --secret {}".replace("{}", "x", 1), "hunter2!x"),
    ("docker login -u me -p {} registry.local", "correcthorse"),
    ("podman login registry.local --username me --password {}", "correcthorse"),
    ("mysql -u root -p {} app", "hunter22"),
    ("mariadb-dump --password {} app", "hunter22"),
    ("redis-cli -h db -a {} ping", "correcthorse"),
    ("htpasswd -b /etc/nginx/users me {}", "correcthorse"),
    ("htpasswd -nbB me {}", "correcthorse"),
    ('{{"user": "me", "pass": "{}"}}', "correcthorse"),
    ('{{"pw": "{}"}}', "hunter22"),
    ('{{\\"pwd\\": \\"{}\\"}}', "correcthorse"),
    ("user=me&pass={}&x=1", "hunter22"),
    ("pw: {}", "hunter22"),
    ("a?user=me%26password%3D{}", "hunter22"),
    ("%22password%22%3A%22{}", "hunter22"),
    ("密码：{}", "hunter22"),
    ("密碼是 {}", "hunter22"),
    ("パスワードは「{}」です", "hunter22"),
    ("비밀번호: {}", "hunter22"),
    ("la contraseña es: {}", "hunter22"),
    ("mot de passe : {}", "hunter22"),
    ("senha={}", "hunter22"),
    ("пароль: {}", "hunter22"),
    ("hasło: {}", "98127364"),
    ("wachtwoord: {}", "hunter22"),
    ("ｐａｓｓｗｏｒｄ：{}", "hunter2!"),
    ("password：{}", "hunter22"),
    ("pass\u200bword={}", "hunter22"),
    ("pass\u200dword: {}", "hunter22"),
    ("the password is {}", "hunter2-2031!"),
    ("The token was {} all along", "x7Kq9pLm"),
    ("the password is p@ssw{}", "ord-of-mine"),
    ("api key {} for staging", HEX * 2),
    ("our API-key is `{}`", HEX * 2),
]  # fmt: skip

BENIGN = [
    "the password policy needs 12 chars",
    "AKIAIOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "export API_KEY=<your-key>",
    "export API_KEY=your-api-key-here",
    "token: ${TOKEN}",
    "password: $DB_PASSWORD",
    "password: ****",
    "api_key=xxxxxxxxxxxxxxxx",
    "max_tokens=4096 and prompt_tokens: 12345",
    "token_count = 1024",
    "password = get_password(user)",
    "password = settings.DATABASE_PASSWORD",
    "def login(user: str, password: str) -> Token:",
    "token: Optional[str] = None",
    "secret_name: my-k8s-secret-1",
    "const { token } = await getAccessToken(request)",
    "We hash passwords with argon2; password: sha256 is too fast.",
    "Is the token expired? The token: it lives an hour.",
    '"password": "The password must have 12 characters"',
    "see https://docs.python.org/3/library/secrets.html for secrets",
    "http://localhost:3000/path@v2 and git@github.com:me/repo.git",
    "use `sk-learn-contrib-something-very-long` with task-force-for-the-thing",
    "Bearer tokens are sent in the Authorization header",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b and uuid 550e8400-e29b-41d4-a716-446655440000",
    f"a key starts with {DASHES}BEGIN PRIVATE KEY{DASHES} and then words",
    "Cookie: consent banner was removed",
    "docker run -u 1000:1000 image && curl http://x",
    "argus_database_url is unset; use argus_owner_database_url instead",
    "password=password",
    "the secret: never block the hook",
    "key: value, token: comma, author: me",
    "the --password flag is required, and so is the --token option",
    "pass it with --password instead, or with --token-file ~/.token",
    "use --password to log in; --password <value> is deprecated",
    "docker login -p $PASS and docker login --password-stdin",
    "docker run -p 8080:80 web; redis-cli -a $REDIS_PASS ping",
    "mysql -u root -p app and mysql -p",
    '{"pass": true, "passed": 12, "pass": "skipped", "pw": ""}',
    "tests pass: 12 of 13, first pass: sha256-based, second pass=true",
    "the password is required!, the token is base64-encoded, the secret is optional",
    "the token is RS256-signed and the password is 12-character at least",
    "the token is access_token_v2 and the secret was k8s-managed",
    "The password is stored in vault/prod/db and the token is settings.api.TOKEN",
    "the password was wrong?! The token is someone@example.com",
    "密码：请输入至少8个字符。パスワードは必須です。비밀번호: 필수",
    "la contraseña: debe tener 8 caracteres; mot de passe : obligatoire; senha: 8 caracteres",
    "ｗｉｄｅ　text：１２３ and fa\u200bmily 👨\u200d👩\u200d👧",
    "rotate the api key every 90 days; the access key id is documented",
]


@pytest.mark.parametrize(("around", "secret"), SHAPES, ids=[secret[:12] for _, secret in SHAPES])
def test_it_removes_every_shape(around: str, secret: str) -> None:
    text = "before " + around.format(secret) + " after"
    redacted = redact(text)
    assert secret not in redacted.text
    for piece in secret.split():
        assert len(piece) < 12 or piece not in redacted.text
    assert redacted.text.startswith("before ") and redacted.text.endswith(" after")
    assert sum(redacted.counts.values()) >= 1
    for name in redacted.counts:
        assert f"[redacted:{name}]" in redacted.text
    assert redact(redacted.text).text == redacted.text


def test_it_knows_sixty_shapes_at_least() -> None:
    assert len(SHAPES) >= 60


@pytest.mark.parametrize("around, secret", SHAPES[::5])
def test_it_removes_shapes_inside_json(around: str, secret: str) -> None:
    text = json.dumps({"cwd": "/srv", "text": around.format(secret)}, ensure_ascii=False)
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in redact(text).text


@pytest.mark.parametrize("text", BENIGN)
def test_it_leaves_prose_code_and_examples_alone(text: str) -> None:
    assert redact(text).text == text
    assert redact(text).counts == {}


def test_it_counts_by_name() -> None:
    token = "ghp_" + A + A[:9]
    redacted = redact(f"{token} and {token}, not https://u:{HEX}@h/")
    assert redacted.counts == {"github_token": 2, "url_password": 1}


def test_it_keeps_what_follows_a_bearer_token() -> None:
    redacted = redact(f"Authorization: Bearer {A} was answered with 401")
    assert redacted.text.endswith(" was answered with 401")


PIECES = st.sampled_from(
    [around.format(secret) for around, secret in SHAPES]
    + BENIGN
    + [
        "[redacted:jwt]",
        '"',
        "'",
        "=",
        ":",
        " ",
        "\n",
        "@",
        "://",
        "password",
        "token=",
        "a1b2c3d4e5",
    ]
)


@given(st.lists(PIECES, max_size=5).map("".join))
def test_it_changes_nothing_the_second_time(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once


@given(st.text())
def test_it_takes_any_text(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once


@pytest.mark.parametrize("sign", ["\u200b", "\u2060", "\ufeff", "\u00ad", "\U000e0061"])
def test_it_sees_a_secret_through_what_nobody_sees(sign: str) -> None:
    token = "ghp_" + A + A[:9]
    for at in range(1, len(token), 5):
        redacted = redact(f"fa{sign}r {token[:at]}{sign}{token[at:]} e{sign}nd")
        assert redacted.text == f"fa{sign}r [redacted:github_token] e{sign}nd"


HOSTILE = [
    "a", "-", "eyJ", "=", "eyJ.", "sk-", "://", "://a:", "token", "password:", "password=\"", "bearer ", "mysql ",
    "cookie: a=", f"{DASHES}BEGIN PRIVATE KEY{DASHES}", "machine a login b ", "AKIA", "<password>", "curl -u ", "\n",
    "docker login ", "docker login -p", "redis-cli ", "htpasswd -b ", "--password ", " --password x", "密码：", "pass=",
    "api key ", "the password is ", "\u200b", "a\u200b", "ｐ", '"pass":"',
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_its_time_grows_with_the_text_and_not_faster(unit: str) -> None:
    assert growth(lambda chars: redact(unit * (chars // len(unit))), 25_000) <= GROWTH_MAX


RULES = {
    f"{rule.name}-{anchor}": rule
    for rows in (TOKEN_ANCHORS, *PLACE_ANCHORS.values())
    for anchor, rule in rows
}


@pytest.mark.parametrize(("around", "secret"), SHAPES, ids=[secret[:12] for _, secret in SHAPES])
def test_it_tells_by_literals_that_a_shape_may_be_there(around: str, secret: str) -> None:
    assert may_hold_secret("before " + around.format(secret) + " after")


@given(st.lists(PIECES | st.text(max_size=3), max_size=5).map("".join))
def test_it_never_says_no_where_something_would_go(text: str) -> None:
    assert may_hold_secret(text) or not redact(text).counts


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_it_never_says_no_to_what_a_rule_finds(rule: Rule) -> None:
    @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(rule.pattern.pattern), st.sampled_from(["", " ", "ß", "K", "x "]))
    def read(found: str, before: str) -> None:
        text = before + found
        assert may_hold_secret(text) or not redact(text).counts

    read()


ORDINARY = [
    "the keyboard shortcut does not work, and the key is missing from the table",
    "why do 12 tests pass on Asia/Tokyo and fail here?\n- http needs a look\n- login too",
    "See https://docs.python.org/3/library/secrets.html and /home/me/project/task-runner/patterns.py",
    "rename the token class; count tokens before and after, then commit",
    "tests passed: 12, failed: 0. Now fix <b>bold</b> in the skeleton-component-stylesheet.css",
    "die Tabelle auf dem Gerät ist größer geworden, warum?",
    "请修复解析器的测试",
    "run it on the machine of the customer - mysql is there - and tell me what the discord bot says",
    "def parse(text: str) -> list[str]:\n    return text.split()",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_it_says_no_to_what_people_write(text: str) -> None:
    assert not may_hold_secret(text)


@pytest.mark.parametrize("unit", [*HOSTILE, "key", "sk-", "x_pat", "token "])
def test_its_answer_takes_time_that_grows_with_the_text(unit: str) -> None:
    assert growth(lambda chars: may_hold_secret(unit * (chars // len(unit))), 25_000) <= GROWTH_MAX


def test_it_compiles_what_it_needs_and_imports_nothing_for_an_answer() -> None:
    script = (
        "import sys; import memory.text.secrets as s, memory.text.secret_rules as r;"
        "from memory.text.anchors import may_hold_secret as may; may('an ordinary prompt');"
        "slow = {'re', 'typing', 'dataclasses'} & set(sys.modules);"
        "s.redact('password=hunter2!x');"
        "done = [rule for _, rule in r.TOKEN_ANCHORS if 'compiled' in vars(rule.pattern)];"
        "print(slow, done, 'compiled' in vars(r.ASSIGNMENT.pattern))"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "set() [] True"
