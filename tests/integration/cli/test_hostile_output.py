"""Texts of a hostile server in the output of commands."""

import json
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, TextIO

import click
import pytest

from gateway.cli.main import main
from tests.support.command_tree import LEAVES, Leaf, calls_in, parse, write_files
from tests.support.screens import screen

_TEXT = "evil [red]x[/red] :bomb: \x1b[2J\r\x07\x9b31m\u202e\u2066\x00"
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

    def run(*arguments: str, tenant: str = "acme", screen: TextIO | None = None) -> tuple[str, str]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["gateway", "--url", hostile, "--tenant", tenant, "--key", "k" * 40, *arguments])
            if screen is not None:
                patch.setattr(sys, "stdout", screen)
            with pytest.raises(SystemExit):
                main()
        return capfd.readouterr()

    return run


_LOCAL = frozenset({"serve", "try", "migrate", "stdio", "provide", "connect", "completion", "apply", "plan", "diff"})
"""Commands that do not read the server, or that need manifests."""
_ENDLESS = frozenset(
    {("approval", "watch"), ("audit", "tail"), ("resource", "watch"), ("secrets", "rotate"), ("secrets", "forget")}
)


def _line_of(leaf: Leaf) -> list[str]:
    """A line that runs the command: its first example, or its words with a value for each argument."""
    examples = [words for line in leaf.lines for words in calls_in(line) if parse(words) == leaf.path]
    if leaf.path == ("export",):
        words = ["export"]  # the example writes files
    elif examples:
        words = [word for word in examples[0] if word not in {"--tenant", "acme"} or leaf.path[0] == "tenant"]
    else:
        required = [one for one in leaf.command.params if isinstance(one, click.Argument) and one.required]
        words = [*leaf.path, *("1" if one.type.name.startswith("integer") else "evil" for one in required)]
    has_question = any("--yes" in one.opts for one in leaf.command.params)
    return [*words, *(["--yes"] if has_question and "--yes" not in words else [])]


@pytest.mark.parametrize(
    "leaf",
    [leaf for leaf in LEAVES if leaf.path[0] not in _LOCAL and leaf.path not in _ENDLESS],
    ids=lambda leaf: " ".join(leaf.path),
)
def test_no_text_of_a_server_controls_the_terminal(
    leaf: Leaf, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: every command prints names, texts and results of a hostile server on a terminal and elsewhere (CLI-1)."""
    monkeypatch.chdir(tmp_path)
    for name in ("PETS_KEY", "GITHUB_VALUE", "VENDOR_VALUE", "GATEWAY_WEBHOOK_SECRET"):
        monkeypatch.setenv(name, "whsec_c2VjcmV0")
    write_files(tmp_path)
    line = _line_of(leaf)
    for tenant in ("acme", "refused"):
        for is_json in (False, True):
            printed, errors = run(*line, *(["--json"] if is_json else []), tenant=tenant)
            assert printed + errors, line
            assert (printed + errors).replace("\n", "").isprintable(), line
            assert "Traceback" not in errors
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with screen() as (stream, shown):
        _, errors = run(*line, screen=stream)
    colored = re.sub(r"\x1b\[(?:0|1|3[1-6])m", "", shown[0])
    assert colored.replace("\n", "").isprintable(), line
    assert errors.replace("\n", "").isprintable(), line


def test_json_has_the_exact_texts(run: Any) -> None:
    """Ours: `--json` is exact, and controls no terminal either (CLI-1)."""
    printed, _ = run("--json", "tool", "list")

    assert json.loads(printed) == [_FACTS]
    assert printed.replace("\n", "").isprintable()
