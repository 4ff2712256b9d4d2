"""One request on one deadline: what servers do right, and everything that they do wrong."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from argus.hook.addresses import Address
from argus.hook.wire import Answer, Away, encode, request
from tests.hook.ground import HANG_SECONDS
from tests.hook.rawserver import Raw, answer, hear, saying
from tests.ports import free_port

OK = answer("200 OK", b'{"text":"x"}')


def away(url: str, **options: Any) -> Away:
    with pytest.raises(Away) as caught:
        request(url, "GET", "/x", "k", **options)
    return caught.value


def test_it_sends_the_key_and_the_body_and_reads_the_answer():
    with saying(OK) as raw:
        got = request(raw.url, "POST", "/recall/notes", "argus_k", b'{"query":"q"}')
    assert (got.status, got.json()) == (200, {"text": "x"})
    head, _, body = raw.heard[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /recall/notes HTTP/1.1"
    assert f"Host: 127.0.0.1:{raw.port}" in lines
    assert "Authorization: Bearer argus_k" in lines
    assert "Connection: close" in lines
    assert json.loads(body) == {"query": "q"}


def test_it_keeps_the_path_that_stands_in_the_address():
    with saying(OK) as raw:
        request(f"{raw.url}/memory/", "GET", "/recall/context", "k")
    assert raw.heard[0].startswith(b"GET /memory/recall/context HTTP/1.1\r\n")


def test_it_gives_a_redirect_back_and_follows_none():
    with saying(answer("302 Found", b"", "Location: http://127.0.0.1:1/other")) as raw:
        got = request(raw.url, "GET", "/x", "k")
        assert (got.status, len(raw.heard)) == (302, 1)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'7;a=b\r\n{"text"\r\n5\r\n:"x"}\r\n0\r\n\r\n',
        b'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"text":"x"}',
        b'HTTP/1.1 200\nContent-Length: 12\n\n{"text":"x"}',
        b'HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh:12\r\n\r\n{"text":"x"} and more',
    ],
    ids=["interim", "chunked", "until-close", "bare-newlines", "more-than-told"],
)
def test_it_reads_every_form_of_a_sound_answer(said: bytes):
    with saying(said) as raw:
        assert request(raw.url, "GET", "/x", "k").json() == {"text": "x"}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "cut"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"text"', "cut"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", "cut"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", "http"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", "http"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", "large"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "http"),
        (b"\x15\x03\x01\x00\x02\x02\n", "http"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", "http"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: yyyyyyyyyyyyyyy\r\n" * 9_000 + b"\r\n", "http"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"y" * 5_000_000, "large"),
    ],
    ids=[
        "nothing", "half-head", "half-body", "half-chunk", "no-chunk", "no-length", "huge-length",
        "ssh", "tls", "long-header", "many-headers", "endless",
    ],
)  # fmt: skip
def test_it_tells_what_is_wrong_with_an_unsound_answer(said: bytes, why: str):
    with saying(said) as raw:
        assert away(raw.url).why == why


def test_it_tells_a_page_from_json():
    page = answer("200 OK", b"<!doctype html>", "Content-Type: text/html")
    with saying(page) as raw:
        got = request(raw.url, "GET", "/x", "k")
    with pytest.raises(Away) as caught:
        got.json()
    assert caught.value.why == "json" and "status 200, text/html" in str(caught.value)


def test_it_reads_when_the_server_wants_to_be_asked_again():
    assert Answer(429, {"retry-after": "7"}, b"").retry_after == 7
    assert Answer(429, {"retry-after": "soon"}, b"").retry_after is None
    assert Answer(429, {}, b"").retry_after is None
    past = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert Answer(503, past, b"").retry_after == 0
    coming = {"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}
    assert (Answer(503, coming, b"").retry_after or 0) > 1e8


def hang(channel: socket.socket, raw: Raw) -> None:
    hear(channel)
    raw.over.wait(20)


def drip(channel: socket.socket, raw: Raw) -> None:
    hear(channel)
    for byte in OK * 100:
        channel.sendall(bytes([byte]))
        if raw.over.wait(0.05):
            return


def never_read(channel: socket.socket, raw: Raw) -> None:
    raw.over.wait(20)


@pytest.mark.parametrize("say", [hang, drip, never_read])
def test_it_ends_at_its_deadline_whatever_the_server_does(say):
    body = b"x" * 8_000_000
    with saying(say) as raw:
        started = time.monotonic()
        with pytest.raises(Away) as caught:
            request(raw.url, "POST", "/x", "k", body, seconds=0.5)
        assert caught.value.why == "timeout"
        assert time.monotonic() - started < HANG_SECONDS


def test_it_gives_up_a_server_that_takes_no_connection():
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        waiting = []
        for _ in range(4):
            held = socket.socket()
            held.setblocking(False)
            held.connect_ex(full.getsockname())
            waiting.append(held)
        started = time.monotonic()
        assert away(url, connect=0.3).why == "timeout"
        assert 0.2 < time.monotonic() - started < HANG_SECONDS
        for held in waiting:
            held.close()


def test_it_says_refused_where_nobody_listens():
    assert away(f"http://127.0.0.1:{free_port()}").why == "refused"
    assert away(f"http://localhost:{free_port()}").why == "refused"


def test_it_reads_an_answer_that_comes_before_everything_was_sent():
    def refuse(channel: socket.socket, raw: Raw) -> None:
        channel.recv(1_000)
        channel.sendall(answer("413 Too Large", b"{}"))
        channel.shutdown(socket.SHUT_WR)
        raw.over.wait(0.3)

    with saying(refuse) as raw:
        try:
            assert request(raw.url, "POST", "/x", "k", b"x" * 20_000_000, seconds=2).status == 413
        except Away as error:
            # The system may throw the answer away together with what was not read.
            assert error.why in ("cut", "timeout")


def test_it_finds_localhost_on_either_family():
    with saying(OK, socket.AF_INET6) as raw:
        assert request(f"http://localhost:{raw.port}", "GET", "/x", "k").status == 200
        assert request(f"http://[::1]:{raw.port}", "GET", "/x", "k").status == 200
    assert f"Host: [::1]:{raw.port}\r\n".encode() in raw.heard[1]


def test_it_gives_up_a_name_that_nobody_knows():
    started = time.monotonic()
    assert away("http://no-such-host.invalid:80").why == "dns"
    assert time.monotonic() - started < HANG_SECONDS


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x", "127.0.0.1:8765", "http://", "http://u:p@127.0.0.1", "http://x:0", "http://x:99999",
     "http://x:port", "http://[::1", "http://[::1]x", "http://x y", "http://x\r\nHost: y", "http://x?q",
     "http://bücher.de"],
)  # fmt: skip
def test_it_takes_no_address_that_is_none(url: str):
    assert away(url).why == "address"


def test_it_says_which_address_is_this_machine():
    here = ("http://localhost", "http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:8")
    there = (
        "http://127.0.0.1.evil.test",
        "http://10.0.0.1",
        "https://argus.example",
        "http://[::2]",
    )
    assert [Address(url).loopback for url in here] == [True] * 4
    assert [Address(url).loopback for url in there] == [False] * 4


@pytest.mark.parametrize("key", ["a\r\nX-Other: 1", "a\nb", "schlüssel", "a\0b"])
def test_it_sends_no_key_that_would_be_a_second_header(key: str):
    with saying(OK) as raw:
        with pytest.raises(Away) as caught:
            request(raw.url, "GET", "/x", key)
        assert caught.value.why == "key"
        assert key not in str(caught.value)
        assert not raw.heard


def test_it_escapes_what_a_query_may_not_hold():
    assert (
        encode({"cwd": "/a b/ü&c", "session": "", "x": "\ud800"})
        == "?cwd=%2Fa%20b%2F%C3%BC%26c&x=%3F"
    )
    assert encode({"cwd": ""}) == ""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for localhost that nobody signed, in one file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "-", "-out", "-",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        capture_output=True,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    path.write_bytes(made.stdout)
    return path


def tls(certificate: Path):
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def say(channel: socket.socket, raw: Raw) -> None:
        with context.wrap_socket(channel, server_side=True) as secure:
            raw.heard.append(hear(secure))
            secure.sendall(OK)

    return say


def test_it_speaks_tls_with_a_server_whose_certificate_is_known(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with saying(tls(certificate)) as raw:
        url = f"https://localhost:{raw.port}"
        assert request(url, "GET", "/x", "k", seconds=5).json() == {"text": "x"}


def test_it_sends_nothing_to_a_server_whose_certificate_nobody_signed(certificate):
    with saying(tls(certificate)) as raw:
        error = away(f"https://localhost:{raw.port}", seconds=5)
    assert error.why == "certificate" and "self" in str(error)
    assert not raw.heard


def test_it_tells_a_server_that_speaks_no_tls():
    with saying(lambda channel, raw: channel.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")) as raw:
        assert away(f"https://127.0.0.1:{raw.port}", seconds=5).why in ("tls", "cut")


def test_it_ends_a_tls_handshake_that_hangs():
    with saying(never_read) as raw:
        started = time.monotonic()
        assert away(f"https://127.0.0.1:{raw.port}", seconds=0.7).why == "timeout"
        assert time.monotonic() - started < HANG_SECONDS


def test_it_imports_nothing_that_starts_slowly():
    code = "import sys; import argus.hook.inject, argus.hook.wire, argus.hook.repository; "
    code += (
        "print({'re', 'json', 'socket', 'typing', 'dataclasses', 'collections'} & set(sys.modules))"
    )
    root = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path.insert(0, {root!r}); {code}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done
