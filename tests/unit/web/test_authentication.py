"""Caller of a request in its scope."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.principals import Operator
from gateway.errors import Unauthenticated
from gateway.identity.authenticator import Authenticator
from gateway.identity.key_digests import KeyDigests
from gateway.telemetry.log_context import LABELS, LogContext
from gateway.web.authentication import authenticate, authorization_of

OPERATOR_KEY = "0123456789abcdef0123456789abcdef"


class NoKeys:
    """A finder without keys."""

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        return {}


def _scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http", "scheme": "http", "path": "/x", "headers": list(headers)}


def test_the_header_is_found() -> None:
    """Ours: header names are lower-case in ASGI; the value stays as sent."""
    assert authorization_of(_scope((b"accept", b"x"), (b"authorization", b"Bearer \xe9"))) == "Bearer é"
    assert authorization_of(_scope()) is None


def test_two_credentials_are_refused() -> None:
    """Ours: a proxy and the gateway must not take different ones of two credentials."""
    assert authorization_of(_scope((b"authorization", b"Bearer a"), (b"authorization", b"Bearer a"))) is None


async def test_the_caller_is_kept_in_scope_and_log_context() -> None:
    """Ours: the caller is determined once, and every line of the log names it."""
    credentials = Authenticator(NoKeys(), digests=KeyDigests({"k": b"p"}), operator_key=OPERATOR_KEY)
    scope = _scope((b"authorization", f"Bearer {OPERATOR_KEY}".encode()))

    labels = LogContext("request-1")
    labelled = LABELS.set(labels)
    try:
        caller = await authenticate(scope, credentials)
    finally:
        LABELS.reset(labelled)

    assert caller == Operator() == scope["caller"]
    assert labels == LogContext("request-1", principal="operator")


async def test_a_request_without_a_credential_has_no_caller() -> None:
    """Ours: without a good credential nothing is put into the scope."""
    credentials = Authenticator(NoKeys(), digests=KeyDigests({"k": b"p"}), operator_key=OPERATOR_KEY)
    scope = _scope()

    with pytest.raises(Unauthenticated):
        await authenticate(scope, credentials)
    assert scope.get("caller") is None
