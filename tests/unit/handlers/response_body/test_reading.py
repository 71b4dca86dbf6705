"""Upstream answers as values."""

import pytest

from gateway.domain.http.requests import UpstreamResponse
from gateway.errors import HandlerFailed
from gateway.handlers.response_body.reading import read_json


def _answer(body: bytes) -> UpstreamResponse:
    return UpstreamResponse(status=200, content_type="application/json", body=body)


@pytest.mark.parametrize("unit", [b"{},", b"[],", b"1,"])
def test_an_answer_of_very_many_values_is_not_read(unit: bytes) -> None:
    """Ours: ten megabytes of empty objects would hold up the event loop for a second (ISO-2)."""
    with pytest.raises(HandlerFailed, match="too many JSON values"):
        read_json(_answer(b"[" + unit * 600_000 + b"1]"))


def test_an_ordinary_large_answer_is_read() -> None:
    """Ours: a few megabytes of records are a value like any other."""
    value = read_json(_answer(b"[" + b'{"name":"a name of some length","id":12345},' * 50_000 + b"1]"))

    assert isinstance(value, list)
