"""Who a request stands for: the principal of its key, and what that key may do."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, ParseError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memory.access import KEY_MARK, authenticate
from memory.models import AccessKey, Principal


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer KEY`, `apikey: KEY` or `X-API-Key: KEY`; no cookie, no URL."""

    def authenticate(self, request: Request) -> tuple[Principal, AccessKey] | None:
        if any(str(value).startswith(f"{KEY_MARK}_") for value in request.query_params.values()):
            raise ParseError("A key does not belong in a URL, where logs keep it: send a header.")
        key = key_of(request)
        if not key:
            return None
        row = authenticate(key, now=timezone.now())
        if row is None:
            raise AuthenticationFailed("The key is unknown or revoked: see `manage.py keys`.")
        return row.principal, row

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="argus"'


# The base registers what is derived from it, by a hook that has no types.
class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the API's schema tells of keys."""

    target_class = KeyAuthentication
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def key_of(request: Request) -> str:
    """The key that the request carries, or ""."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    named = request.headers.get("apikey") or request.headers.get("X-API-Key") or ""
    return str(named).strip()


def caller(request: Request) -> tuple[Principal, AccessKey]:
    """Who the request stands for, and by which key; only behind `needs`."""
    principal: Any = request.user
    key: Any = request.auth
    assert isinstance(principal, Principal)
    assert isinstance(key, AccessKey)
    return principal, key


def needs(scope: str) -> type[BasePermission]:
    """A permission class: the request's key must carry this scope."""

    class HasScope(BasePermission):
        message = f"The key lacks the scope {scope}."

        def has_permission(self, request: Request, view: Any) -> bool:
            return isinstance(request.auth, AccessKey) and scope in request.auth.scopes

    return HasScope
