"""Published JSON Schemas of handlers, one per kind, as far as JSON Schema can express the rules."""

from collections.abc import Mapping

from gateway.definitions.handlers.limits import (
    MAX_COMPLETION_VALUE_LENGTH,
    MAX_COMPLETION_VALUES,
    MAX_QUESTIONS,
    MAX_SAMPLED_TOKENS,
    MAX_SLEEP_S,
    MAX_STEPS,
    MAX_TIMEOUT_S,
    MIN_TIMEOUT_S,
)
from gateway.definitions.handlers.requests import METHODS
from gateway.definitions.handlers.specs import HandlerKind
from gateway.definitions.handlers.steps import LEVELS
from gateway.definitions.limits import MAX_PATHS
from gateway.definitions.published.definitions import Schema, closed, ref, text
from gateway.definitions.templates.limits import MAX_TEMPLATE_LENGTH

_FLAG: Schema = {"type": "boolean"}
_MIME: Schema = {"type": "string", "minLength": 3, "maxLength": 300}
_TEMPLATE: Schema = {"type": "string", "maxLength": MAX_TEMPLATE_LENGTH, "description": "Liquid."}
_TREE: Schema = {
    "description": "Any JSON. Strings are Liquid templates; a string that is exactly one {{ … }} keeps the type of "
    "the value."
}
_TEMPLATE_ARRAY: Schema = {"type": "array"}
_URL: Schema = {"type": "string", "maxLength": 2048, "pattern": "^https?://[^/?#{}\\s@]+([/?].*)?$"}
_KEY: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"}
_PATHS: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": MAX_PATHS,
    "items": {"type": "string", "pattern": "^(/([^~/]|~0|~1)*)+$"},
}
_RESULT = closed(
    pointer={"type": "string", "pattern": "^(/([^~/]|~0|~1)*)*$", "maxLength": 512}, keep=_PATHS, drop=_PATHS
)
_LOOKUP: Mapping[str, object] = {
    "url": _URL,
    "headers": {"type": "object", "maxProperties": 32, "additionalProperties": _TEMPLATE},
    "credential": text(64),
    "result": _RESULT,
    "timeout_s": {"type": "number", "minimum": MIN_TIMEOUT_S, "maximum": MAX_TIMEOUT_S},
}
_REQUEST: Mapping[str, object] = {"method": {"enum": list(METHODS)}, "body": _TREE, **_LOOKUP}
_DECLARED_RESULT: Mapping[str, object] = {
    "text": _TEMPLATE,
    "json": _TREE,
    "content": _TEMPLATE_ARRAY,
    "contents": _TEMPLATE_ARRAY,
    "messages": _TEMPLATE_ARRAY,
    "mimeType": _MIME,
    "isError": _FLAG,
}
_ONE_RESULT_FORM: Schema = {
    "oneOf": [{"required": [name]} for name in ("text", "json", "content", "contents", "messages")],
}
_NUMBER: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "\\{[{%]"}]}
_QUESTIONS: Mapping[str, Schema] = {
    "ask": closed(("message",), message=_TEMPLATE, schema={"type": "object"}, url=_URL, key=_KEY),
    "sample": closed(
        ("messages", "maxTokens"),
        messages={"anyOf": [_TEMPLATE, _TEMPLATE_ARRAY]},
        maxTokens={"type": "integer", "minimum": 1, "maximum": MAX_SAMPLED_TOKENS},
        systemPrompt=_TEMPLATE,
        temperature={"type": "number", "minimum": 0, "maximum": 2},
        key=_KEY,
    ),
    "roots": closed(key=_KEY),
}
_STEPS_WITH_RESULTS: Mapping[str, Schema] = {
    **_QUESTIONS,
    "call": closed(("tool",), tool=text(64), arguments={"type": "object"}),
    "http": closed(("method", "url"), **_REQUEST),
}
_STEPS_WITHOUT_RESULT: Mapping[str, Schema] = {
    "progress": {"anyOf": [_NUMBER, closed(("progress",), progress=_NUMBER, total=_NUMBER, message=_TEMPLATE)]},
    "log": {"anyOf": [_TEMPLATE, closed(("data",), level={"enum": list(LEVELS)}, data=_TREE, logger=text(200))]},
    "sleep": {"type": "number", "minimum": 0, "maximum": MAX_SLEEP_S},
    "gather": {"type": "array", "minItems": 1, "maxItems": MAX_QUESTIONS, "items": ref("question")},
    "return": {**closed(**_DECLARED_RESULT), **_ONE_RESULT_FORM},
    "if": closed(("when", "then"), when=text(MAX_TEMPLATE_LENGTH), then=ref("steps"), else_=ref("steps")),
}


def _step(verb: str, schema: Schema, *, is_kept: bool) -> Schema:
    kept = {"as": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"}} if is_kept else {}
    return {"type": "object", "properties": {verb: schema, **kept}, "required": [verb], "additionalProperties": False}


STEP_PARTS: Mapping[str, Schema] = {
    "question": {"oneOf": [_step(verb, schema, is_kept=True) for verb, schema in _QUESTIONS.items()]},
    "step": {
        "oneOf": [
            *(_step(verb, schema, is_kept=True) for verb, schema in _STEPS_WITH_RESULTS.items()),
            *(_step(verb, schema, is_kept=False) for verb, schema in _STEPS_WITHOUT_RESULT.items()),
        ]
    },
    "steps": {"type": "array", "minItems": 1, "maxItems": MAX_STEPS, "items": ref("step")},
}
"""Shared definitions that the schema of steps refers to under `$defs`."""

_COMPLETIONS: Schema = {
    "type": "object",
    "additionalProperties": {
        "oneOf": [
            closed(
                ("values",),
                values={
                    "type": "array",
                    "maxItems": MAX_COMPLETION_VALUES,
                    "items": {"type": "string", "maxLength": MAX_COMPLETION_VALUE_LENGTH},
                },
            ),
            closed(("http",), http=closed(("url",), **_LOOKUP)),
        ]
    },
}


def _handler(kind: HandlerKind, required: tuple[str, ...], properties: Mapping[str, object]) -> Schema:
    return closed(("kind", *required), kind={"const": kind.value}, completions=_COMPLETIONS, **properties)


HANDLERS: Mapping[HandlerKind, Schema] = {
    HandlerKind.STATIC: {
        **_handler(
            HandlerKind.STATIC,
            (),
            {
                "content": ref("content"),
                "contents": {"type": "array", "minItems": 1, "items": ref("contents")},
                "messages": ref("messages"),
                "isError": _FLAG,
                "structuredContent": {},
            },
        ),
        "oneOf": [{"required": [name]} for name in ("content", "contents", "messages")],
    },
    HandlerKind.TEMPLATE: {**_handler(HandlerKind.TEMPLATE, (), _DECLARED_RESULT), **_ONE_RESULT_FORM},
    HandlerKind.HTTP: _handler(HandlerKind.HTTP, ("method", "url"), _REQUEST),
    HandlerKind.STEPS: _handler(HandlerKind.STEPS, ("steps",), {"steps": ref("steps")}),
    HandlerKind.OPENAPI: _handler(
        HandlerKind.OPENAPI,
        ("source", "operation"),
        {"source": text(64), "operation": text(2048), "arguments": {"type": "object"}},
    ),
}
"""One schema per kind of handler."""
