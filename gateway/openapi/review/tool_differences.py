"""Differences of one tool between two versions of its source: its listing, safety, selection and requests."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import msgspec
import orjson

from gateway.domain.http.plans import RequestPlan
from gateway.domain.json_access import as_object, point
from gateway.domain.sources import CompiledOperation
from gateway.domain.updates.source_changes import ComparedTool, Difference, DifferenceKind, Impact
from gateway.openapi.review.excerpts import make_difference
from gateway.openapi.review.request_differences import compare_requests
from gateway.openapi.review.schema_differences import compare_schemas

_RESULTS: Mapping[DifferenceKind, Impact] = {
    DifferenceKind.ARGUMENT_ADDED: Impact.WIDENING,
    DifferenceKind.ARGUMENT_REQUIRED: Impact.WIDENING,
    DifferenceKind.ARGUMENT_NARROWED: Impact.WIDENING,
    DifferenceKind.ARGUMENT_WIDENED: Impact.BREAKING,
    DifferenceKind.ARGUMENT_REMOVED: Impact.BREAKING,
}
"""Impact of differences of results, which agents receive: a wider schema breaks their expectations."""

_decode_plan = msgspec.json.Decoder(RequestPlan).decode
_COMPARED = frozenset(("name", "inputSchema", "outputSchema", "annotations", "_meta"))


def compare_tool(old: ComparedTool, new: CompiledOperation) -> Iterator[Difference]:
    """Yield the differences between a tool and its operation in another version.

    If the stored forms differ without a known difference, one difference reports this.
    """
    before, after = _read(old.definition), _read(new.definition)
    plan = decode_plan(old.plan)
    is_same = True
    for difference in _compare(old, new, (before, after), plan):
        is_same = False
        yield difference
    if is_same and _canonical(before | {"name": ""}) != _canonical(after | {"name": ""}):
        yield make_difference(
            DifferenceKind.TEXT, Impact.TEXT, "", old=None, new="its definition is encoded differently"
        )
    elif is_same and plan != new.plan:
        yield make_difference(
            DifferenceKind.REQUEST, Impact.BREAKING, "/request", old=None, new="its request is encoded differently"
        )


def decode_plan(plan: bytes) -> RequestPlan:
    """Return a stored request plan."""
    return _decode_plan(plan)


def is_unchanged(old: ComparedTool, new: CompiledOperation) -> bool:
    """True if both are stored as the same bytes."""
    stored = (old.name, old.definition, old.safety, old.tags, old.plan)
    return stored == (new.tool, new.definition, new.safety, new.tags, msgspec.json.encode(new.plan))


def _compare(
    old: ComparedTool,
    new: CompiledOperation,
    definitions: tuple[Mapping[str, object], Mapping[str, object]],
    plan: RequestPlan,
) -> Iterator[Difference]:
    before, after = definitions
    if old.safety != new.safety:
        yield make_difference(
            DifferenceKind.SAFETY, Impact.BREAKING, "/safety", old=old.safety.value, new=new.safety.value
        )
    elif before.get("annotations") != after.get("annotations"):
        shown = (before.get("annotations"), after.get("annotations"))
        yield make_difference(DifferenceKind.SAFETY, Impact.BREAKING, "/annotations", old=shown[0], new=shown[1])
    yield from compare_requests(plan, new.plan)
    if old.tags != new.tags:
        yield make_difference(
            DifferenceKind.SELECTION, Impact.BREAKING, "/tags", old=list(old.tags), new=list(new.tags)
        )
    yield from compare_schemas(_input(before, old.input_schema), _input(after, new.input_schema), "/inputSchema")
    yield from _results(before.get("outputSchema"), after.get("outputSchema"))
    for key in dict.fromkeys((*before, *after)):
        if key not in _COMPARED and before.get(key) != after.get(key):
            yield make_difference(DifferenceKind.TEXT, Impact.TEXT, point(key), old=before.get(key), new=after.get(key))


def _results(old: object, new: object) -> Iterator[Difference]:
    before, after = as_object(old), as_object(new)
    if before is None or after is None:
        if before is not after:
            yield make_difference(DifferenceKind.RESULT, Impact.BREAKING, "/outputSchema", old=before, new=after)
        return
    for one in compare_schemas(before, after, "/outputSchema"):
        impact = _RESULTS.get(one.kind)
        yield one if impact is None else replace(one, kind=DifferenceKind.RESULT, impact=impact)


def _input(definition: Mapping[str, object], full: bytes | None) -> Mapping[str, object]:
    """Return the input schema that calls are validated against: the full schema if the listed one is shortened."""
    return _object(definition, "inputSchema") if full is None else _read(full)


def _object(definition: Mapping[str, object], key: str) -> Mapping[str, object]:
    return as_object(definition.get(key)) or {}


def _read(definition: bytes) -> dict[str, object]:
    return cast("dict[str, object]", orjson.loads(definition))


def _canonical(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
