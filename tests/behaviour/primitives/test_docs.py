"""The documents on primitives are true: every block of them is sent, run, and compared."""

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from gateway.embed import Gateway, Settings
from tests.support.documents import pets
from tests.support.gateway import META, OPEN_POLICY, OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.hosting import hosted
from tests.support.upstream import RecordingUpstream, recording_upstream

DOCS = Path(__file__).parents[3] / "docs"
NAMES = ("policy.md", "primitives.md", "tool-patterns.md")
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_API = "https://api.example.com"
_ASKING: dict[str, Any] = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a document: its language, its attributes, and its text."""

    language: str
    command: str
    text: str


def _blocks(name: str) -> Iterator[Block]:
    for found in _BLOCK.finditer((DOCS / name).read_text()):
        yield Block(found[1], found[2] or "", found[3])


class Reader:
    """Runs the blocks of one document, one after the other."""

    def __init__(self, running: RunningGateway, key: str, upstream: RecordingUpstream) -> None:
        self._running = running
        self._key = key
        self._upstream = upstream
        self._answer: dict[str, Any] = {}

    async def follow(self, block: Block) -> None:
        """Run one block."""
        verb, _, rest = block.command.partition(" ")
        text = block.text.replace(_API, self._upstream.url)
        match block.language, verb:
            case "json", "POST":
                answer = await self._running.admin.post(
                    rest, content=text, headers={"content-type": "application/json"}
                )
                assert answer.status_code == 201, (text, answer.text)
            case "json", "PATCH":
                (await self._running.admin.patch(rest, json=_json(text))).raise_for_status()
            case "json", "upstream":
                self._upstream.body = text.encode()
            case "json", "rpc":
                self._answer = await self._ask(rest, _json(text))
            case "json", "result" | "error":
                assert verb in self._answer, (text, self._answer)
                _compare(_json(text), self._answer[verb], verb)
            case ("python", "") | ("console", "") | ("yaml", ""):
                pass
            case _:
                raise AssertionError(f"no rule for ```{block.language} {block.command}")

    async def _ask(self, rest: str, params: dict[str, Any]) -> dict[str, Any]:
        """`METHOD`, `METHOD asking` or `METHOD at TENANT/PROFILE`."""
        method, _, how = rest.partition(" ")
        place = how.removeprefix("at ") if how.startswith("at ") else "acme"
        meta = _ASKING if how == "asking" else META
        named = params.get("name") or params.get("uri")
        sent: dict[str, str] = {
            "authorization": f"Bearer {self._key}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
        }
        if named is not None:
            sent["mcp-name"] = named
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        answer = await self._running.http.post(f"/t/{place}/mcp", json=body, headers=sent)
        if answer.headers["content-type"].startswith("text/event-stream"):
            last = [line for line in answer.text.splitlines() if line.startswith("data: {")][-1]
            return _json(last.removeprefix("data: "))
        return cast(dict[str, Any], answer.json())


def _json(text: str) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(text))


def _compare(expected: object, actual: object, where: str) -> None:
    """True if everything that is expected exists: objects may have more members, lists no more elements."""
    if isinstance(expected, Mapping):
        assert isinstance(actual, Mapping), where
        for name, value in cast(Mapping[str, object], expected).items():
            assert name in actual, f"{where}/{name}"
            _compare(value, cast(Mapping[str, object], actual)[name], f"{where}/{name}")
    elif isinstance(expected, Sequence) and not isinstance(expected, str):
        assert isinstance(actual, Sequence), where
        wanted, found = cast(Sequence[object], expected), cast(Sequence[object], actual)
        assert len(wanted) == len(found), where
        for number, value in enumerate(wanted):
            _compare(value, found[number], f"{where}/{number}")
    else:
        assert expected == actual, where


def _gateway(name: str, settings: Settings) -> Gateway:
    """The gateway that the document's Python makes, or one without any code."""
    programs = [block.text for block in _blocks(name) if block.language == "python"]
    if not programs:
        return Gateway(settings)
    names: dict[str, Any] = {"__name__": "documented"}
    for program in programs:
        exec(compile(program, name, "exec"), names)
    gateway = names["gateway"]
    assert isinstance(gateway, Gateway)
    return gateway


@asynccontextmanager
async def _reading(name: str, settings: Settings, upstream: RecordingUpstream) -> AsyncGenerator[Reader]:
    async with hosted(_gateway(name, settings).asgi()) as running:
        await running.create_tenant("acme")
        await running.import_document("acme", pets(upstream.url))
        yield Reader(running, await running.create_key("acme"), upstream)


@pytest.mark.parametrize("name", NAMES)
async def test_every_block_of_the_documents_is_true(
    name: str, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the documented results are the real ones, for each kind of handler (PRG-1, PRG-3, CAL-1)."""
    async with recording_upstream() as upstream:
        for variable, value in (
            ("DATABASE_URL", database_url),
            ("REDIS_URL", redis_url),
            ("SECRET_KEYS", SECRET_KEY),
            ("OPERATOR_KEY", OPERATOR_KEY),
            ("TENANT_POLICY", ",".join(OPEN_POLICY)),
            ("EGRESS_ALLOW", upstream.authority),
        ):
            monkeypatch.setenv(f"GATEWAY_{variable}", value)
        async with _reading(name, Settings(), upstream) as reader:  # type: ignore[call-arg]  # all have defaults
            for block in _blocks(name):
                await reader.follow(block)
    targets = {seen.target for seen in upstream.seen}
    if name == "primitives.md":
        assert "/customers/M%C3%B6bius%20%26%20Sons/orders?state=open" in targets
        assert "/reminders" not in targets


def test_the_documents_have_a_block_for_each_kind() -> None:
    """Ours: no kind of handler is without an example (PRG-3)."""
    texts = "".join(block.text for name in NAMES for block in _blocks(name))
    kinds = {found[1] for found in re.finditer(r'"kind": "(\w+)"', texts)}

    assert kinds == {"static", "template", "http", "steps", "openapi"}
    assert any(block.language == "python" for block in _blocks("primitives.md"))
