"""The examples of a document, and the schema of the tool that each of them belongs to.

This is a second reading of the document, apart from the compiler's: what the compiler overlooks is still counted here.
A document and a listed schema are walked side by side, as far as they have the same properties, items and branches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import jsonschema_rs
import msgspec

from gateway.domain.sources import Compilation

Json = dict[str, Any]
Outputs = Mapping[tuple[str, str], tuple[str, Json]]
"""Name and output schema of each tool that lists one, by method and path."""

Tools = Mapping[tuple[str, str], tuple[str, Json, Mapping[tuple[str, str], str]]]
"""Name, input schema and argument names of each tool, by method and path."""

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_BRANCHES = ("allOf", "anyOf", "oneOf")
_MAX_CHAIN_LENGTH = 20
_MAX_DEPTH = 30
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentExample:
    """One example: its place in the document, its value, and the listed schema for it (without `$defs`)."""

    where: str
    value: Any
    listed: Any
    is_whole: bool
    """True for the example of a parameter or body, false for one of a schema inside."""


@dataclass(slots=True)
class Verdicts:
    """Accepted and refused examples of one document."""

    accepted: int = 0
    texts: int = 0
    """Accepted examples that are the JSON text of a value; a call sends the value."""
    refused: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Tool, place, and the first violation."""

    def add(self, tool: str, schema: Json, examples: Iterable[DocumentExample]) -> None:
        """Check the examples of one tool against its schema."""
        compiled = _Compiled(schema)
        for example in examples:
            fault = compiled.fault(example)
            is_text = fault is not None and compiled.fault(replace(example, value=_read_text(example.value))) is None
            self.accepted += fault is None or is_text
            self.texts += is_text
            if fault is not None and not is_text:
                self.refused.append((tool, example.where, fault))

    def include(self, others: "Verdicts") -> None:
        """Add the verdicts of another document."""
        self.accepted += others.accepted
        self.texts += others.texts
        self.refused += others.refused

    @property
    def count(self) -> int:
        """The number of all examples."""
        return self.accepted + len(self.refused)


def read_tools(compilation: Compilation) -> Tools:
    """Return what the examples are checked against."""
    found: dict[tuple[str, str], tuple[str, Json, dict[tuple[str, str], str]]] = {}
    for made in compilation.operations:
        schema = msgspec.json.decode(made.definition)["inputSchema"]
        names = {(item.location.value, item.name): item.argument for item in made.plan.parameters}
        found[made.method, made.path] = (made.tool, schema, names)
    return found


def read_outputs(compilation: Compilation) -> Outputs:
    """Return the output schemas that the examples of responses are checked against."""
    listed = ((made, msgspec.json.decode(made.definition).get("outputSchema")) for made in compilation.operations)
    return {(made.method, made.path): (made.tool, schema) for made, schema in listed if schema is not None}


def judge(root: Json, tools: Tools) -> Verdicts:
    """Check every example of a request against the listed schema of its tool."""
    found = Verdicts()
    seen: set[tuple[int, int]] = set()
    for method, path, item, node in _operations(root):
        if (tool := tools.get((method, path))) is not None:
            name, schema, arguments = tool
            examples = _Walk(root, schema, seen, hidden="readOnly").operation(item, node, arguments)
            found.add(name, schema, examples)
    return found


def judge_responses(root: Json, outputs: Outputs) -> Verdicts:
    """Check every example of a success response against the listed output schema of its tool."""
    found = Verdicts()
    seen: set[tuple[int, int]] = set()
    for method, path, _, node in _operations(root):
        if (tool := outputs.get((method, path))) is not None:
            name, schema = tool
            found.add(name, schema, _Walk(root, schema, seen, hidden="writeOnly").responses(node))
    return found


class _Compiled:
    """The parts of one input schema, compiled where examples need them."""

    def __init__(self, schema: Json) -> None:
        self._defs = schema.get("$defs", {})
        self._validators: dict[int, Any] = {}

    def fault(self, example: DocumentExample) -> str | None:
        """The first violation; None for an example that fits."""
        if isinstance(example.listed, bool):
            return None if example.listed else "is refused always"
        key = id(example.listed)
        if key not in self._validators:
            schema = {**example.listed, "$defs": self._defs}
            options = jsonschema_rs.RegexOptions()
            self._validators[key] = jsonschema_rs.Draft202012Validator(
                schema, validate_formats=True, offline=True, pattern_options=options
            )
        try:
            error = next(iter(self._validators[key].iter_errors(example.value)), None)
        except (TypeError, ValueError):
            return "is not JSON"
        return None if error is None else f"{'/'.join(map(str, error.schema_path))}: {error.message[:200]}"


class _Walk:
    """The examples of one operation; `hidden` is the keyword of properties that the schema lacks."""

    def __init__(self, root: Json, schema: Json, seen: set[tuple[int, int]], *, hidden: str) -> None:
        self._root = root
        self._schema = schema
        self._seen = seen
        self._hidden = hidden

    def operation(self, item: Json, node: Json, arguments: Mapping[tuple[str, str], str]) -> Iterator[DocumentExample]:
        """Yield the examples of parameters and body, then those inside their schemas."""
        properties = self._schema["properties"]
        declared: dict[tuple[object, object], Json] = {}
        for parameter in [*_list(item.get("parameters")), *_list(node.get("parameters"))]:
            found = self._follow(parameter)
            declared[found.get("in"), found.get("name")] = found
        for (location, name), parameter in declared.items():
            if location in {"body", "formData"}:
                yield from self._swagger_body(str(name), parameter, properties.get("body"))
                continue
            argument = arguments.get((str(location), str(name)))
            if argument in properties:
                yield from self._holder(f"parameter {name}", parameter, properties[argument])
                for media in _object(parameter.get("content")).values():
                    yield from self._holder(f"parameter {name}", self._follow(media), properties[argument])
        body = self._follow(node.get("requestBody"))
        for media_type, media in _object(body.get("content")).items():
            if "body" in properties and ("json" in media_type or "form" in media_type):
                yield from self._holder(f"body {media_type}", self._follow(media), properties["body"])

    def responses(self, node: Json) -> Iterator[DocumentExample]:
        """Yield the examples of success responses in JSON, then those inside the schema of a single one."""
        declared = _object(node.get("responses"))
        fine = [status for status in declared if status[:1] == "2"] or [name for name in declared if name == "default"]
        for status in fine:
            response = self._follow(declared[status])
            media = self._json_media(response)
            for key, value in media.items():
                if key == "examples":
                    yield from (self._whole(status, named) for named in self._named(value))
                elif key == "example":
                    yield self._whole(status, value)
            if len(fine) == 1 and "schema" in media:
                yield from self._schemas(status, media["schema"], self._schema, 0, is_whole=True)

    def _json_media(self, response: Json) -> Json:
        """The media type from which the output schema comes; a response of Swagger 2.0 in the same form."""
        if "schema" in response:
            examples = _object(response.get("examples"))
            return {"schema": response["schema"], **({"example": examples[JSON]} if JSON in examples else {})}
        content = _object(response.get("content"))
        name = next((name for name in (JSON, *content) if name in content and "json" in name), None)
        return self._follow(content.get(name or ""))

    def _whole(self, status: str, value: Any) -> DocumentExample:
        return DocumentExample(where=status, value=value, listed=self._schema, is_whole=True)

    def _named(self, examples: Any) -> Iterator[Any]:
        for named in _object(examples).values():
            found = self._follow(named)
            yield from (found[key] for key in ("value", "dataValue") if key in found)

    def _swagger_body(self, name: str, parameter: Json, listed: Any) -> Iterator[DocumentExample]:
        if listed is None:
            return
        if parameter.get("in") == "body":
            yield from self._holder("body", parameter, listed)
            return
        field_schema = _object(self._resolve(listed).get("properties")).get(name)
        if field_schema is not None:
            yield from self._schemas(f"field {name}", parameter, field_schema, 0, is_whole=True)

    def _holder(self, where: str, holder: Json, listed: Any) -> Iterator[DocumentExample]:
        """Examples of a Parameter, Media Type or Swagger body, then those of its schema."""
        values = [holder[key] for key in ("example", "x-example") if key in holder]
        values += self._named(holder.get("examples"))
        for value in values:
            yield DocumentExample(where=where, value=value, listed=listed, is_whole=True)
        if "schema" in holder:
            yield from self._schemas(where, holder["schema"], listed, 0, is_whole=True)
        elif "type" in holder:  # a Swagger 2.0 parameter is its own schema
            yield from self._schemas(where, holder, listed, 0, is_whole=True)

    def _schemas(
        self, where: str, node: Any, listed: Any, depth: int, *, is_whole: bool = False
    ) -> Iterator[DocumentExample]:
        found, shown = self._follow(node), self._resolve(listed)
        key = (id(found), id(shown) if is_whole else 0)
        if depth > _MAX_DEPTH or not found or key in self._seen:
            return
        self._seen.add(key)
        values = [found["example"]] if "example" in found else []
        values += found["examples"] if isinstance(found.get("examples"), list) else []
        for value in values:
            yield DocumentExample(where=where, value=value, listed=listed, is_whole=is_whole)
        if found.keys().isdisjoint(_BRANCHES):
            shown = self._unwrap(shown)
        for name, part in _object(found.get("properties")).items():
            inner = _object(shown.get("properties")).get(name)
            if inner is not None and not self._follow(part).get(self._hidden):
                yield from self._schemas(f"{where}/{name}", part, inner, depth + 1)
        for keyword in ("items", "additionalProperties"):
            if isinstance(found.get(keyword), dict) and isinstance(shown.get(keyword), dict):
                yield from self._schemas(f"{where}/{keyword}", found[keyword], shown[keyword], depth + 1)
        for keyword in _BRANCHES:
            branches = _list(found.get(keyword))
            candidates = (_list(shown.get(key)) for key in (keyword, "anyOf"))
            others: Sequence[Any] = next((found for found in candidates if len(found) == len(branches)), ())
            for number, (part, inner) in enumerate(zip(branches, others, strict=False)):
                yield from self._schemas(f"{where}/{keyword}/{number}", part, inner, depth + 1)

    def _unwrap(self, shown: Json) -> Json:
        """The listed schema without the constant or the null that was added to it."""
        wrapped = next((shown[keyword] for keyword in ("allOf", "anyOf") if keyword in shown), None)
        return shown if wrapped is None else self._resolve(wrapped[0])

    def _follow(self, node: Any) -> Json:
        for _ in range(_MAX_CHAIN_LENGTH):
            if not isinstance(node, dict):
                return {}
            ref = cast("Json", node).get("$ref")
            if not isinstance(ref, str) or not ref.startswith("#/"):
                return cast("Json", node)
            node = self._root
            for token in ref[2:].split("/"):
                plain = token.replace("%7B", "{").replace("%7D", "}").replace("~1", "/").replace("~0", "~")
                node = _object(node).get(plain)
        return {}

    def _resolve(self, listed: Any) -> Json:
        for _ in range(_MAX_CHAIN_LENGTH):
            ref = _object(listed).get("$ref")
            if not isinstance(ref, str):
                break
            listed = self._schema.get("$defs", {}).get(ref.removeprefix("#/$defs/"))
        return _object(listed)


def _operations(root: Json) -> Iterator[tuple[str, str, Json, Json]]:
    for path, item in _object(root.get("paths")).items():
        for method in _METHODS:
            node = _object(item).get(method)
            if isinstance(node, dict):
                yield method.upper(), path, _object(item), cast("Json", node)


def _read_text(value: Any) -> Any:
    """The value of a JSON text; any other value unchanged."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except msgspec.MsgspecError:
        return value


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else ()


def reasons(refused: Iterable[tuple[str, str, str]]) -> Mapping[str, int]:
    """Refused examples by the keyword that refuses them."""
    counts: dict[str, int] = {}
    for _, _, fault in refused:
        keyword = fault.partition(":")[0].rpartition("/")[2]
        counts[keyword] = counts.get(keyword, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))
