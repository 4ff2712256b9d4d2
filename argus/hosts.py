"""By which names the server may be asked: its own, but what watches it asks by its address.

Knows nothing about what is answered.
"""

from __future__ import annotations

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware

#: What a supervisor and a scraper ask of each process by the address that it has.
# Why: a pod's address is no name that anybody can set beforehand, and Prometheus sends it as Host.
# None of them shows anything to a browser that was led here by a foreign name: the first two say
# nothing, and the third wants a key.
WATCHED = frozenset({"/healthz", "/readyz", "/metrics"})


class HostMiddleware(CommonMiddleware):
    """Refuses (400) what is asked by a name that is not ours, but for WATCHED."""

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        if request.path_info in WATCHED:
            return None
        return super().process_request(request)


def by_own_name(request: HttpRequest) -> bool:
    """Whether the request was made by a name that is ours."""
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True
