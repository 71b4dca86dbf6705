"""Texts of a hostile server in the output of commands."""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from gateway.cli.main import main

_TEXT = "evil\x1b[2J\r\x07\x9b31m\u202e\u2066\x00"
_NAMES = (
    "action arguments at check code created_at detail excerpt fault id kind method name path pattern pointer reason"
    " role scheme severity slug source state status subject summary text title tool tenant type uri url version"
)
_FACTS: dict[str, Any] = dict.fromkeys(_NAMES.split(), _TEXT)
_TOOL = {"name": "evil", "description": _TEXT, "inputSchema": {"type": "object"}}
_RESULT = {"content": [{"type": "text", "text": _TEXT}, {"type": "resource_link", "name": _TEXT, "uri": _TEXT}]}
_BODY: dict[str, Any] = {
    **_FACTS,
    "items": [_FACTS],
    "findings": [_FACTS],
    "rules": [{**_FACTS, "names": [_TEXT], "warnings": [_TEXT]}],
    "warnings": [_TEXT],
    "notes": [_TEXT],
    "needs": [{**_FACTS, "ways": [_TEXT]}],
    "operations": [{**_FACTS, "reasons": [_TEXT]}],
    "request": {**_FACTS, "headers": [[_TEXT, _TEXT]], "body": f"{_TEXT}\n{_TEXT}"},
    "definition": {"description": _TEXT},
    "contents": [_FACTS],
    "messages": [{"role": _TEXT, "content": {"type": "text", "text": _TEXT}}],
    "report": {"operations": [{**_FACTS, "reasons": [_TEXT]}], "warnings": [_TEXT]},
    "sensitive": [_FACTS],
    "changed": [{**_FACTS, "differences": [{**_FACTS, "old": _TEXT, "new": _TEXT}]}],
    "result": _RESULT,
    "tools": [_TOOL],
}


class _Hostile(BaseHTTPRequestHandler):
    """Responds to every request with the texts; below /refused with a problem."""

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        response = _BODY
        if self.path.startswith("/t/"):
            asked = json.loads(body)
            tools = {"tools": [_TOOL]} if asked["method"] == "tools/list" else _RESULT
            response = {"jsonrpc": "2.0", "id": asked.get("id"), "result": tools}
        refused = "/refused/" in self.path
        if refused:
            faults = [{"pointer": _TEXT, "reason": _TEXT}, {"pointer": _TEXT, "reason": _TEXT}]
            response = {"title": _TEXT, "detail": _TEXT, "code": _TEXT, "errors": faults}
        found = json.dumps(response).encode()
        self.send_response(403 if refused else 200)
        self.send_header("Content-Type", "application/problem+json" if refused else "application/json")
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _respond  # noqa: N815  # the names of the standard library

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name of the standard library
        """Log nothing."""


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    """The URL of the server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hostile) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def run(hostile: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs a command against the server and returns what it printed."""

    def run(*arguments: str, tenant: str = "acme") -> tuple[str, str]:
        monkeypatch.setattr(
            sys, "argv", ["gateway", "--url", hostile, "--tenant", tenant, "--key", "k" * 40, *arguments]
        )
        with pytest.raises(SystemExit):
            main()
        return capfd.readouterr()

    return run


@pytest.mark.parametrize(
    "line",
    [
        "tenant list",
        "tool list",
        "tool show evil",
        "tool try evil",
        "source list",
        "source show evil",
        "source report evil",
        "source review evil",
        "live-source list",
        "live-source show evil",
        "resource list",
        "prompt list",
        "approval list",
        "approval show evil",
        "approval approve evil",
        "audit list",
        "key list",
        "policy show",
        "policy check",
        "access show",
        "guardrail list",
        "credential list",
        "doctor",
        "call evil",
        "explain evil",
    ],
)
def test_no_text_of_a_server_controls_the_terminal(line: str, run: Any) -> None:
    """Attack: escape sequences, carriage returns and bidi overrides in names, texts and results are printed (CLI-1)."""
    for tenant in ("acme", "refused"):
        printed, errors = run(*line.split(), tenant=tenant)

        assert "evil" in printed + errors
        assert (printed + errors).replace("\n", "").isprintable()


def test_json_has_the_exact_texts(run: Any) -> None:
    """Ours: `--json` is exact, and controls no terminal either (CLI-1)."""
    printed, _ = run("--json", "tool", "list")

    assert json.loads(printed) == [_FACTS]
    assert printed.replace("\n", "").isprintable()
