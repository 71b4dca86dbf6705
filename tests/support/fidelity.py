"""Cases of a document and a call: the bytes on the wire, and the result.

The cases lie outside the repository; each has a document, calls with arguments by location, and what is expected. What
is compared is what a server would read: methods, raw paths, decoded pairs, parsed bodies.
"""

import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

import jsonschema_rs
import pytest

from tests.support.upstream import RecordingUpstream, Seen

_FOLDER = Path(__file__).parents[2] / ".." / "shared" / "fidelity" / "cases"
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


@dataclass(frozen=True, slots=True)
class Case:
    """One document and its calls."""

    name: str
    content: Mapping[str, Any]

    def document(self, first: str, second: str) -> Any:
        """The document with its two upstreams at these origins."""
        text = json.dumps(self.content["spec"]).replace("{{UPSTREAM_HOST}}", first.removeprefix("http://"))
        return json.loads(text.replace("{{UPSTREAM2}}", second).replace("{{UPSTREAM}}", first))

    @property
    def calls(self) -> Sequence[Mapping[str, Any]]:
        """The calls, in order."""
        return cast("list[Mapping[str, Any]]", self.content["calls"])

    @property
    def credentials(self) -> Mapping[str, Any]:
        """Stored credentials of the source, by security scheme."""
        return self.calls[0].get("credentials") or {} if self.calls else {}


def fidelity_cases() -> list[Case]:
    """Every case; a test that asks for them is skipped where they are missing."""
    found = [Case(path.stem, json.loads(path.read_bytes())) for path in sorted(_FOLDER.glob("*.json"))]
    if not found:
        pytest.skip("the folder of wire cases (../shared/fidelity) is not here")
    return found


def arguments_for(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by location as the flat arguments of a generated tool (DESIGN, "A generated tool")."""
    offered = schema["properties"]
    flat: dict[str, Any] = {}
    for location in ("path", "query", "header", "cookie"):
        named: Mapping[str, Any] = given.get(location) or {}
        for name, value in named.items():
            plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
            flat[next((item for item in (f"{location}_{plain}", plain) if item in offered), plain)] = value
    return flat | ({"body": _files(given["body"])} if "body" in given else {})


def answer_with(upstream: RecordingUpstream, respond: Mapping[str, Any] | None) -> None:
    """Responses of the upstream from now on."""
    reported = respond or {
        "status": 200,
        "headers": {"content-type": "application/json"},
        "body_b64": "eyJvayI6dHJ1ZX0=",
    }
    upstream.status = reported["status"]
    upstream.content_type = reported["headers"].get("content-type", "")
    upstream.headers = tuple((key, value) for key, value in reported["headers"].items() if key != "content-type")
    upstream.body = b64decode(reported["body_b64"])


def request_differences(expected: Mapping[str, Any] | None, seen: Sequence[tuple[int, Seen]]) -> Iterator[str]:
    """Differences between the one request that was sent and the expected one."""
    if expected is None or len(seen) != 1:
        if expected is not None or seen:
            yield f"{len(seen)} requests were sent"
        return
    [(origin, got)] = seen
    path, _, query = got.target.partition("?")
    if (got.method, origin) != (expected["method"], expected.get("origin", 1)):
        yield f"{got.method} to origin {origin}"
    if _normal_path(path) not in [_normal_path(item) for item in expected["path"]]:
        yield f"path {path}"
    yield from _query_differences(expected, query)
    yield from _header_differences(expected, got)
    if (body := expected.get("body")) is not None:
        yield from _body_differences(body, got)


def result_differences(expected: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
    """Differences between a tool result and the expected one."""
    blocks, structured = result["content"], result.get("structuredContent")
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    checks: Mapping[str, Callable[[Any], bool]] = {
        "is_error": lambda wanted: bool(result.get("isError")) == wanted,
        "text_contains": lambda wanted: wanted in text or wanted in json.dumps(structured, ensure_ascii=False),
        "text_equals": lambda wanted: wanted == text,
        "structured": lambda wanted: wanted == structured,
        "structured_any": lambda wanted: structured in wanted,
        "content_types": lambda wanted: wanted == [block["type"] for block in blocks],
        "data_b64": lambda wanted: any(
            wanted in (block.get("data"), block.get("resource", {}).get("blob")) for block in blocks
        ),
    }
    for name, check in checks.items():
        if name in expected and not check(expected[name]):
            yield f"{name} is not {expected[name]!r}: {json.dumps(result)[:300]}"


def tool_differences(expected: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Differences between the listed tools and the expected ones."""
    if "count" in expected and len(tools) != expected["count"]:
        yield f"{len(tools)} tools"
    for tool in tools:
        schema = tool["inputSchema"]
        if not re.match(expected.get("names_match", ""), tool["name"]):
            yield f"name {tool['name']}"
        try:
            jsonschema_rs.Draft202012Validator(schema, offline=True)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            yield f"schema: {error}"
        yield from (f"offers {name}" for name in expected.get("props_absent", ()) if name in schema["properties"])
        yield from (
            f"wants {name}"
            for name in expected.get("not_required", ())
            if name in json.dumps(schema.get("required", []))
        )
        if expected.get("mentions_deprecated") and "deprecat" not in json.dumps(tool).lower():
            yield "is not described as deprecated"


def _files(value: object) -> object:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return members["$file"] if "$file" in members else {key: _files(item) for key, item in members.items()}
    return [_files(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _query_differences(expected: Mapping[str, Any], query: str) -> Iterator[str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    if "query_any" in expected:
        if [list(pair) for pair in pairs] not in expected["query_any"]:
            yield f"query {query}"
        return
    if "query" in expected and _grouped(pairs) != _grouped([(name, value) for name, value in expected["query"]]):
        yield f"query {query}"
    if "query_raw" in expected and query not in expected["query_raw"]:
        yield f"raw query {query}"


def _header_differences(expected: Mapping[str, Any], got: Seen) -> Iterator[str]:
    for name, value in expected.get("headers", {}).items():
        if got.header(name) != value:
            yield f"header {name}: {got.header(name)}"
    for name in expected.get("headers_absent", ()):
        if got.header(name) is not None:
            yield f"header {name} was sent"
    pairs = (item.strip().partition("=") for item in (got.header("cookie") or "").split(";"))
    cookies = {name: value for name, _, value in pairs}
    for name, value in expected.get("cookies", {}).items():
        if cookies.get(name) != value:
            yield f"cookie {name}: {cookies.get(name)}"
    wanted = expected.get("content_type")
    if wanted is not None and (got.header("content-type") or "").partition(";")[0].strip() != wanted:
        yield f"content type {got.header('content-type')}"


def _body_differences(expected: Mapping[str, Any], got: Seen) -> Iterator[str]:
    kind, body = expected["kind"], got.body
    if kind == "multipart":
        yield from _part_differences(expected["parts"], parse_parts(body, got.header("content-type") or ""))
        return
    checks: Mapping[str, Callable[[], bool]] = {
        "none": lambda: body == b"",
        "json": lambda: json.loads(body) == expected["value"],
        "form": lambda: (
            _grouped(parse_qsl(body.decode(), keep_blank_values=True))
            == _grouped([(name, value) for name, value in expected["pairs"]])
        ),
        "text": lambda: body.decode() in (expected.get("value_any") or [expected["value"]]),
        "bytes": lambda: body == b64decode(expected["base64"]),
    }
    if not checks[kind]():
        yield f"body {body[:200]!r}"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a multipart body as a server reads it."""

    name: str | None
    filename: str | None
    content_type: str | None
    content: bytes


def parse_parts(body: bytes, content_type: str) -> list[Part]:
    """The parts of a multipart body, read by the standard library's parser of mail."""
    message = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    parts = cast("list[Any]", message.get_payload()) if message.is_multipart() else []
    return [
        Part(
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part.get_content_type() if part["content-type"] else None,
            part.get_payload(decode=True),
        )
        for part in parts
    ]


def _part_differences(expected: Sequence[Mapping[str, Any]], parts: Sequence[Part]) -> Iterator[str]:
    if sorted(item["name"] for item in expected) != sorted(part.name or "" for part in parts):
        yield f"parts {[part.name for part in parts]}"
        return
    ordered = sorted(parts, key=lambda part: part.name or "")
    for wanted, part in zip(sorted(expected, key=lambda item: str(item["name"])), ordered, strict=True):
        if "text" in wanted and part.content.decode() != wanted["text"]:
            yield f"part {part}"
        if "base64" in wanted and part.content != b64decode(wanted["base64"]):
            yield f"part {part}"
        if wanted.get("has_filename") and not part.filename:
            yield f"part {part.name} has no file name"
        if "json" in wanted and (json.loads(part.content), part.content_type) != (
            wanted["json"],
            wanted["content_type"],
        ):
            yield f"part {part}"


def _grouped(pairs: Sequence[tuple[str, str]]) -> tuple[Counter[str], dict[str, list[str]]]:
    """The values of each name in order; the order of the names does not matter."""
    names = Counter(name for name, _ in pairs)
    return names, {name: [value for key, value in pairs if key == name] for name in names}


def _normal_path(path: str) -> str:
    """A path with percent-encodings that mean nothing undone (RFC 3986 section 6.2.2)."""

    def tidy(found: re.Match[str]) -> str:
        character = unquote(found[0])
        return character if _UNRESERVED.fullmatch(character) else found[0].upper()

    return re.sub(r"%[0-9A-Fa-f]{2}", tidy, path)
