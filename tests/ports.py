"""A port for a server that a test starts."""

from __future__ import annotations

import random
import socket

#: Below what systems give to those who connect: such a port could be somebody's the next moment.
PORTS = range(20_000, 32_000)


def free_port() -> int:
    """A port of this machine at which nobody listens now."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
