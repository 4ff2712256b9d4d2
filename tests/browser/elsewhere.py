"""A site of another origin, whose page tries what such a page can."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

#: What a page of another origin tries: posts and requests with the cookies, frames, sockets.
ATTACK = """<!DOCTYPE html><iframe id=framed></iframe><script>
const told = window.told = { read: [], socket: false };
const form = () => new URLSearchParams({ all: "on", name: "theirs", scope: "capture", chosen: "1",
    verb: "approve", sure: "1", reason: "a", title: "a", content: "a", verdict: "never" });
const post = { method: "POST", mode: "no-cors" };
const text = { "Content-Type": "text/plain" };
const attempt = async (at, options) => {
    try {
        const answer = await fetch(at, { credentials: "include", ...options });
        if (answer.type !== "opaque" && answer.type !== "opaqueredirect") told.read.push(at);
    } catch { }
};
const seen = (make) => new Promise((done) => { make(done); setTimeout(done, 2000); });
(async () => {
    for (const at of DOORS) {
        await attempt(at, { ...post, body: form() });
        await attempt(at, { ...post, headers: text, body: "{}" });
        await attempt(at, { method: "POST", headers: { "HX-Request": "true" }, body: form() });
        await seen((done) => {
            const one = new Image();
            one.onload = one.onerror = done;
            one.src = at;
        });
    }
    for (const at of ["/ui/", "/ui/notes/?format=json", "/ui/keys/", "/ui/stages"]) {
        await attempt(SITE + at);
    }
    await seen((done) => {
        const socket = new WebSocket(SITE.replace("http", "ws") + "/ui/");
        socket.onopen = () => { told.socket = true; done(); };
        socket.onerror = done;
    });
    await seen((done) => { framed.onload = done; framed.src = SITE + "/ui/"; });
    window.done = true;
})();
</script>"""

#: A form that sends itself to where the address says.
FORM = """<!DOCTYPE html>
<form id=f method=post><input name=name value=theirs><input name=scope value=capture></form>
<script>f.action = SITE + location.search.slice(1); f.submit()</script>"""


@contextmanager
def elsewhere(site: str, posted: Sequence[str]) -> Iterator[int]:
    """A site on another port, whose page tries what another origin can; its port."""
    doors = [site + address for address in (*posted, "/capture", "/ui/login/")]
    attack = ATTACK.replace("SITE", json.dumps(site)).replace("DOORS", json.dumps(doors))
    sent = FORM.replace("SITE", json.dumps(site))

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = (sent if self.path.startswith("/form") else attack).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    there = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=there.serve_forever, daemon=True).start()
    try:
        yield there.server_address[1]
    finally:
        there.shutdown()
        there.server_close()
