"""Off-topic prompts that are pasted output: long, full of names and numbers, asking for a look."""

from __future__ import annotations

from itertools import product

PLEASE = (
    "what does this mean?",
    "can you fix this error please",
    "it says this since this morning:",
    "I get this when I start the app",
)

PASTED = (
    """\
Traceback (most recent call last):
  File "/srv/shop/cart/views.py", line 88, in checkout
    total = sum(line.price for line in cart.lines)
  File "/srv/shop/cart/models.py", line 41, in price
    return self.quantity * self.product.price
AttributeError: 'NoneType' object has no attribute 'price'""",
    """\
npm ERR! code ERESOLVE
npm ERR! ERESOLVE unable to resolve dependency tree
npm ERR! Found: react@18.2.0
npm ERR! Could not resolve dependency: peer react@"^17.0.0" from react-datepicker@4.1.1""",
    """\
error[E0502]: cannot borrow `buffer` as mutable because it is also borrowed as immutable
  --> src/ring.rs:57:9
   |
55 |     let head = &buffer[0];
57 |     buffer.push(3);""",
    """\
2026-02-11T07:14:03Z WARN  o.a.k.clients.NetworkClient - [Consumer clientId=inv-3] Connection to
node 2 (10.4.0.17:9092) could not be established. Broker may not be available.
2026-02-11T07:14:08Z ERROR c.e.inventory.Main - giving up after 5 attempts""",
    """\
FAILED tests/test_invoice_mail.py::test_subject - AssertionError: assert 'Rechnung' == 'Invoice'
FAILED tests/test_invoice_mail.py::test_attachment - FileNotFoundError: invoice.pdf
2 failed, 147 passed, 3 warnings in 12.41s""",
    """\
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x6b2f1a]
goroutine 34 [running]:
main.(*Poller).tick(0x0, 0xc0000a4000)
        /go/src/poller/main.go:112 +0x3a""",
    """\
CONTAINER ID   IMAGE          COMMAND                  STATUS
9f1c2ab77d10   rabbitmq:3.12  "docker-entrypoint.s…"   Restarting (1) 12 seconds ago
41b0de5c8e21   minio:latest   "/usr/bin/docker-ent…"   Up 3 hours""",
    """\
TypeError: Cannot read properties of undefined (reading 'map')
    at ProductGrid (webpack-internal:///./src/shop/ProductGrid.jsx:31:24)
    at renderWithHooks (react-dom.development.js:14985:18)
    at mountIndeterminateComponent (react-dom.development.js:17811:13)""",
)


def logs() -> list[str]:
    """Every output with every way to ask about it, before or after."""
    return [
        f"{please}\n\n{pasted}" if place % 2 else f"{pasted}\n\n{please}"
        for place, (pasted, please) in enumerate(product(PASTED, PLEASE))
    ]
