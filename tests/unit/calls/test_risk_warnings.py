"""Risk warnings: nothing that a caller sends pushes out the facts that a person needs."""

from typing import Any

import pytest

from gateway.calls.risk_warnings import describe_risk, show_call
from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.handlers.interfaces import Prepared
from gateway.handlers.previews.requests import show_request

PURGE = Tool(
    name="purge",
    definition=b'{"name":"purge","annotations":{"destructiveHint":true}}',
    safety=Safety.DANGEROUS,
    safety_reasons=(),
    origin=PrimitiveOrigin.CUSTOM,
)
HIDDEN = "Not all of the request is shown."
TEXT = ("Content-Type", "application/json")


def facts(**request: Any) -> tuple[str, ...]:
    values: dict[str, Any] = {"method": "POST", "url": "https://pets.example/pets", "headers": (TEXT,)} | request
    sent = UpstreamRequest(**values)
    prepared = Prepared(digest=b"", request=sent)
    preview = show_request(sent)
    return describe_risk(PURGE, prepared, show_call(preview, prepared, "purge"), preview)


FORM = ("Content-Type", "multipart/form-data; boundary=x")
PART = b'--x\r\nContent-Disposition: form-data; name="f"\r\n\r\n'


@pytest.mark.parametrize(
    "request_",
    [
        {"body": b'"' + b"x" * 5000 + b'"'},
        {"url": f"https://pets.example/pets?a={'x' * 3000}&all=true"},
        {"headers": (TEXT, ("X-Reason", "x" * 600))},
        {"headers": (TEXT, *((f"X-{number}", "x") for number in range(30)))},
        {"body": b"\xff\x00\xfe"},
        {"headers": (FORM,), "body": PART + b"one\r\n" + (PART + b"two\r\n") * 25 + b"--x--\r\n"},
        {"headers": (FORM,), "body": PART + b"\xff\x00\r\n--x--\r\n"},
    ],
    ids=["body", "query", "header", "headers", "binary", "parts", "binary part"],
)
def test_omitted_parts_are_reported(request_: dict[str, Any]) -> None:
    """Ours: a caller hides nothing behind a limit of what is shown (SAF-3)."""
    assert HIDDEN in facts(**request_)


def test_a_whole_request_has_no_such_warning() -> None:
    """Ours: a warning that is always there is not read (SAF-3)."""
    assert HIDDEN not in facts(url="https://pets.example/pets?a=1", body=b'{"a":1}')


def test_repeated_names_push_out_no_other_fact() -> None:
    """Ours: the number of facts is bounded, and the caller's come last (SAF-3)."""
    query = "&".join(f"n{number}=1&n{number}=2" for number in range(40))
    found = facts(url=f"https://pets.example/pets?{query}", body=b'"' + b"x" * 5000 + b'"')
    assert {HIDDEN, f"The safety level is {Safety.DANGEROUS.value}."} <= set(found)
    assert "The definition marks it as destructive." in found
