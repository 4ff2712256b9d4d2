"""What every HTTP door shares: bodies read under a cap, parsed once, errors as problem+json.

Knows nothing about any verb.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import TypeAdapter, ValidationError
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from memory.errors import (
    ArgusError,
    Conflict,
    Forbidden,
    InfraError,
    NotFound,
    RefusedError,
)
from memory.stages.capture import BATCH_BYTES_MAX

logger = logging.getLogger(__name__)

T = TypeVar("T")
View = TypeVar("View", bound=Callable[..., Any])

#: Seconds a client waits when the database or a model is away and did not say for how long.
RETRY_AFTER_SECONDS = 5

STATUSES: tuple[tuple[type[Exception], int, str], ...] = (
    (NotFound, 404, "not_found"),
    (Http404, 404, "not_found"),
    (Forbidden, 403, "forbidden"),
    (PermissionDenied, 403, "forbidden"),
    (Conflict, 409, "conflict"),
    (InfraError, 503, "away"),
    (RefusedError, 422, "refused"),
    (OperationalError, 503, "database_away"),
    (InterfaceError, 503, "database_away"),
    (ArgusError, 422, "refused"),
)


class TooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = f"The body is over {BATCH_BYTES_MAX} bytes: post in smaller batches."
    default_code = "too_large"


class LengthRequired(APIException):
    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_detail = "The body came without a Content-Length: send it whole, not in chunks."
    default_code = "length_required"


class CappedJSONParser(BaseParser):
    """JSON read from the stream under a cap, whatever Content-Length says."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        data = stream.read(BATCH_BYTES_MAX + 1)
        if len(data) > BATCH_BYTES_MAX:
            raise TooLarge
        try:
            return json.loads(data, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"The body is not JSON: {error}") from error


def body(request: Request) -> Any:
    """The parsed body. Raises LengthRequired for one of unknown length: Django reads none."""
    if request.headers.get("Transfer-Encoding") and not request.headers.get("Content-Length"):
        raise LengthRequired
    return request.data


def described(
    name: str, *, methods: tuple[str, ...], **shape: TypeAdapter[Any]
) -> Callable[[View], View]:
    """What the API's schema says of a view: its operation id and what it reads.

    `body` or `query` is the adapter that parses it, so that the schema says what the code does.
    """
    given: dict[str, Any] = {"request": None}
    if adapter := shape.get("body"):
        given["request"] = {"application/json": _inlined(adapter.json_schema())}
    if adapter := shape.get("query"):
        schema = adapter.json_schema()
        given["parameters"] = [
            OpenApiParameter(field, required=field in schema.get("required", ()))
            for field in schema["properties"]
        ]
    decorate: Callable[[View], View] = extend_schema(
        operation_id=name, methods=list(methods), responses=OpenApiTypes.OBJECT, **given
    )
    return decorate


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with every definition in its place; ours do not refer to themselves."""
    definitions = schema.pop("$defs", {})

    def put(node: Any) -> Any:
        if isinstance(node, list):
            return [put(one) for one in node]
        if not isinstance(node, dict):
            return node
        if reference := node.get("$ref"):
            return put(definitions[reference.rpartition("/")[2]])
        return {key: put(value) for key, value in node.items()}

    inlined: dict[str, Any] = put(schema)
    return inlined


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse(adapter: TypeAdapter[T], data: Any) -> T:
    """Parse input once, at the door. Raises pydantic's ValidationError, answered as 422."""
    return adapter.validate_python(data)


def faults(error: ValidationError) -> list[dict[str, str]]:
    """What is wrong with an input, as JSON pointers and sentences; the input itself is not told."""
    return [
        {"pointer": "/" + "/".join(map(str, one["loc"])), "detail": one["msg"]}
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: RFC 9457 problems with a code; None for a bug (a 500)."""
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}
    if isinstance(error, ValidationError):
        code, kind, detail = 422, "invalid", "The input is not as expected."
        extra["errors"] = faults(error)
    elif isinstance(error, APIException):
        code, kind = error.status_code, str(getattr(error, "default_code", "error"))
        detail = str(error.detail)
        if header := getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = header
        if wait := getattr(error, "wait", None):
            headers["Retry-After"] = str(math.ceil(wait))
    else:
        found = next(((s, k) for cls, s, k in STATUSES if isinstance(error, cls)), None)
        if found is None:
            return None
        code, kind = found
        detail = HTTPStatus(code).phrase
        if isinstance(error, ArgusError):
            detail = error.told or str(error)
            extra |= {"report": asdict(error.report)} if error.report else {}
    if code == status.HTTP_503_SERVICE_UNAVAILABLE:
        wait = getattr(error, "retry_after", None) or RETRY_AFTER_SECONDS
        headers["Retry-After"] = str(math.ceil(wait))
        logger.warning("%s answered 503: %s", context.get("request"), type(error).__name__)
    body = {
        "type": f"about:blank#{kind}",
        "title": HTTPStatus(code).phrase,
        "status": code,
        "code": kind,
        "detail": detail,
        **extra,
    }
    return Response(body, status=code, headers=headers, content_type="application/problem+json")
