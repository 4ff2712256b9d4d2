"""What a browser may do with our pages: the Content-Security-Policy, and the theme's exception.

Everywhere: no inline script, no foreign host, no frame around a page, forms that stay here. Under
/ui/ the theme's Alpine evaluates expressions and sets styles; nothing more is allowed there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from csp.middleware import CSPMiddleware
from django.http import HttpRequest, HttpResponseBase

#: Where the theme's pages are.
THEMED = "/ui/"

POLICY: Mapping[str, list[str]] = {
    "default-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'none'"],
}

EXCEPTION: Mapping[str, list[str]] = {
    "script-src": ["'self'", "'unsafe-eval'"],
    "style-src": ["'self'", "'unsafe-inline'"],
}


class PolicyMiddleware(CSPMiddleware):
    """The policy of each path."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if request.path.startswith(THEMED):
            widened: Any = response
            widened._csp_update = EXCEPTION
        return super().process_response(request, response)
