"""Wire cases of our own, kept as short YAML: a document, the arguments, and the request at the server.

A file holds many cases; each becomes one operation under a path of its own, so that one document and one import serve
all cases of a file and version. What is compared is exact: raw targets, header values, bodies as text or as parsed.
"""

import gzip
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

import yaml

from tests.support.fidelity import parse_parts
from tests.support.upstream import RecordingUpstream, Seen

_FOLDER = Path(__file__).parents[1] / "behaviour" / "openapi" / "specification"
_ONE = ("in", "style", "explode", "allowReserved", "allowEmptyValue", "schema", "value")
_SINGLE = "v"
_PACKERS: Mapping[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
_JSON_ANSWER: Mapping[str, Any] = {"type": "application/json", "text": '{"ok":true}'}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One operation and one call of it."""

    name: str
    version: str
    content: Mapping[str, Any]

    @property
    def method(self) -> str:
        """The request."""
        method: str = self.content.get("method", "post" if "content" in self.content else "get")
        return method

    @property
    def is_further(self) -> bool:
        """True for a method of `additionalOperations`, which are written as they are sent."""
        return self.version >= "3.2" and not self.method.islower()

    @property
    def path(self) -> str:
        """The path template, which begins with the name."""
        return f"/{self.name}{self.content.get('path', '')}"

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the tool."""
        given: dict[str, Any] = dict(self.content.get("arguments", {}))
        if "value" in self.content:
            given[_SINGLE] = self.content["value"]
        if "body" in self.content:
            given["body"] = _files(self.content["body"])
        return given

    def operation(self) -> dict[str, Any]:
        """The operation as the document writes it."""
        node: dict[str, Any] = {"operationId": self.name, "responses": {"200": {"description": "Fine."}}}
        if parameters := self._parameters():
            node["parameters"] = parameters
        if "content" in self.content:
            node["requestBody"] = {"required": not self.content.get("optional"), "content": self.content["content"]}
        more: dict[str, Any] = self.content.get("operation", {})
        return node | more

    def _parameters(self) -> list[dict[str, Any]]:
        written = [dict(item) for item in self.content.get("parameters", ())]
        single = {key: self.content[key] for key in _ONE if key in self.content and key != "value"}
        if not written and (single or "value" in self.content):
            written = [{"name": _SINGLE, "in": "query", **single}]
        if self.version == "2.0":
            return written
        for item in written:
            if item.get("in") == "path":
                item.setdefault("required", True)
            if "$ref" not in item and "content" not in item:
                item.setdefault("schema", {"type": "string"})
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The cases of one file and version, as one document."""

    name: str
    version: str
    more: Mapping[str, Any]
    credentials: Mapping[str, Any]
    cases: Sequence[Case]
    yaml: str | None = None
    """The document as text, where its anchors and aliases are what is tested."""

    def document(self, first: str, second: str) -> Any:
        """The document, with its two upstreams at these origins."""
        if self.yaml is not None:
            return self.yaml.replace("{first}", first)
        key = "swagger" if self.version == "2.0" else "openapi"
        document: dict[str, Any] = {key: self.version, "info": {"title": self.name, "version": "1"}}
        document |= {} if self.version == "2.0" else {"servers": [{"url": "{first}"}]}
        document |= self.more
        paths: dict[str, Any] = {}
        for case in self.cases:
            item: dict[str, Any] = dict(case.content.get("item", {}))
            methods = {case.method: case.operation()}
            paths[case.path] = item | ({"additionalOperations": methods} if case.is_further else methods)
        text = json.dumps(document | {"paths": paths})
        text = text.replace("{host}", first.removeprefix("http://"))
        return json.loads(text.replace("{first}", first).replace("{second}", second))


def file_names() -> list[str]:
    """The files there are."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def read_groups(stem: str) -> list[Group]:
    """The cases of one file, by version."""
    held: Any = yaml.load((_FOLDER / f"{stem}.yaml").read_text(), Loader=yaml.CSafeLoader)  # a safe one
    cases = [
        Case(name=f"{stem}-{item['name']}", version=item.get("version", held["version"]), content=item)
        for item in held["cases"]
    ]
    versions = list(dict.fromkeys(case.version for case in cases))
    return [
        Group(
            name=f"{stem} {version}",
            version=version,
            more=held.get("document", {}),
            credentials=held.get("credentials", {}),
            cases=[case for case in cases if case.version == version],
            yaml=held.get("yaml"),
        )
        for version in versions
    ]


def answer_as(upstream: RecordingUpstream, reported: Mapping[str, Any] | None) -> None:
    """Responses of the upstream from now on."""
    reported = reported or _JSON_ANSWER
    body = (
        b64decode(reported["base64"])
        if "base64" in reported
        else reported.get("text", "").encode(reported.get("charset", "utf-8"))
    )
    headers = dict(reported.get("headers", {}))
    packed = _PACKERS.get(headers.get("content-encoding", ""))
    upstream.status = reported.get("status", 200)
    upstream.content_type = reported.get("type", "")
    upstream.headers = tuple(headers.items())
    upstream.body = body if packed is None or reported.get("is_packed") else packed(body)


def differences(case: Case, seen: Sequence[tuple[int, Seen]], result: Mapping[str, Any]) -> Iterator[str]:
    """Differences between the outcome and the case."""
    wanted = case.content
    texts = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
    if "refused" in wanted:
        if seen or not result.get("isError") or wanted["refused"] not in texts:
            yield f"not refused: {[(item.target, item.body) for _, item in seen]} {texts}"
        return
    if len(seen) != 1:
        yield f"{len(seen)} requests: {texts}"
        return
    [(origin, got)] = seen
    if origin != wanted.get("origin", 1):
        yield f"origin {origin}"
    yield from _line_differences(case, got)
    yield from _body_differences(wanted, got)
    yield from result_differences(wanted.get("result", {}), result, texts)


def listed_differences(case: Case, tool: Mapping[str, Any]) -> Iterator[str]:
    """Differences between the entry of a list and the case; `listed` has values by JSON Pointer."""
    for pointer, value in case.content.get("listed", {}).items():
        found: Any = tool
        for name in pointer.split("/")[1:]:
            found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
        if found != value:
            yield f"listed {pointer} is {found!r}"


def _line_differences(case: Case, got: Seen) -> Iterator[str]:
    wanted = case.content
    if got.method != (case.method if case.is_further else case.method.upper()):
        yield f"method {got.method}"
    if "target" in wanted and got.target != (target := f"{wanted.get('base', '')}/{case.name}{wanted['target']}"):
        yield f"target {got.target} instead of {target}"
    if "cookie" in wanted and got.header("cookie") != wanted["cookie"]:
        yield f"cookie {got.header('cookie')}"
    for name, value in wanted.get("headers", {}).items():
        if got.header(name) != value:
            yield f"header {name}: {got.header(name)}"


def _body_differences(wanted: Mapping[str, Any], got: Seen) -> Iterator[str]:
    sent_as = got.header("content-type")
    if "type" in wanted and sent_as != wanted["type"]:
        yield f"type {sent_as}"
    found: dict[str, Any] = {}
    if "text" in wanted:
        found["text"] = got.body.decode(wanted.get("charset", "utf-8"), "replace")
    if wanted.get("text_contains", "").encode() not in got.body:
        yield f"no {wanted['text_contains']!r} in {got.body[:300]!r}"
    if "json" in wanted:
        found["json"] = json.loads(got.body or b'"nothing"')
    if "form" in wanted:
        found["form"] = [list(pair) for pair in parse_qsl(got.body.decode(), keep_blank_values=True)]
    if "bytes" in wanted:
        found["bytes"] = b64encode(got.body).decode()
    if "parts" in wanted:
        found["parts"] = [
            [part.name, part.filename, part.content_type, part.content.decode("latin-1")]
            for part in parse_parts(got.body, sent_as or "")
        ]
    for key, value in found.items():
        if value != wanted[key]:
            yield f"{key} is {value!r}"


def result_differences(wanted: Mapping[str, Any], result: Mapping[str, Any], texts: str) -> Iterator[str]:
    """Differences between a result and the expected one; without expectations it has to be a success."""
    blocks: list[dict[str, Any]] = result["content"]
    meta: dict[str, Any] = result.get("_meta") or {}
    found: dict[str, object] = {
        "error": bool(result.get("isError")),
        "text": texts,
        "structured": result.get("structuredContent"),
        "blocks": [block["type"] for block in blocks],
        "data": [block.get("data") or block.get("resource", {}).get("blob") for block in blocks],
        "meta": meta.get("gateway/upstream"),
        "mime": [block.get("mimeType") or block.get("resource", {}).get("mimeType") for block in blocks],
    }
    if wanted.get("contains", "") not in texts:
        yield f"result without {wanted['contains']!r}: {texts[:300]}"
    if "lacks" in wanted and wanted["lacks"] in texts:
        yield f"result with {wanted['lacks']!r}: {texts[:300]}"
    for key, value in {"error": False, **wanted}.items():
        if key in found and found[key] != value:
            yield f"result {key} is {found[key]!r}: {texts[:200]}"


def _files(value: object) -> object:
    """The value with each `{file: text}` in it as a file argument."""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        content = members.get("file")
        if isinstance(content, str) and members.keys() <= {"file", "filename", "content_type"}:
            named = {key: item for key, item in members.items() if key != "file"}
            return {"base64": b64encode(content.encode("latin-1")).decode(), **named}
        return {key: _files(item) for key, item in members.items()}
    return [_files(item) for item in cast("list[object]", value)] if isinstance(value, list) else value
