"""The surface of the admin API: its OpenAPI document as served, the scopes and the body limit of each operation.

What many operations share is stored once and named by them: refusals by status, parameters by place and name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.admin.endpoint import SMALL_BODY, Route
from gateway.admin.openapi.document import describe
from gateway.admin.routes.index import ENDPOINTS, ROOT
from tests.surface.canonical import Json
from tests.surface.differences import ADDED, CHANGED, REMOVED, Difference, compare_names
from tests.surface.schemas import SchemaComparison

ROUTES, PARAMETERS = "routes", "parameters"
_PROBLEM = "application/problem+json"
_PLAIN = ("summary", "operationId", "tags", "security")
"""Members of an operation whose change fails no client: the names and texts of the document."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Objects that operations name instead of repeating them: the first one of each name."""

    parameters: dict[str, Json] = field(default_factory=dict[str, Json])
    refusals: dict[str, Json] = field(default_factory=dict[str, Json])

    def fold(self, found: Json, shared: dict[str, Json], operation: dict[str, Any], member: str) -> dict[str, Json]:
        """Name the shared ones in a member of the operation, and return those that differ from the shared ones."""
        named = {name for name, one in found.items() if _is_shared(name) and shared.setdefault(name, one) == one}
        if named:
            operation[member] = sorted(named)
        return {name: one for name, one in found.items() if name not in named}


def surface() -> Json:
    """Read the surface from the routes."""
    document = cast("Json", describe(ENDPOINTS, server=ROOT))
    routes = {f"{route.method} {route.path}": route for route in ENDPOINTS}
    shared = Shared()
    operations = {
        f"{method.upper()} {path}": _operation(operation, routes.get(f"{method.upper()} {path}"), shared)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    rest = {name: value for name, value in document.items() if name not in {"paths", "components"}}
    components = document["components"]
    schemas = {name: _sorted_required(schema) for name, schema in components["schemas"].items()}
    about = {**rest, "securitySchemes": components["securitySchemes"]}
    common = {"parameters": shared.parameters, "refusals": shared.refusals}
    return {"about": about, "operations": operations, "shared": common, "schemas": schemas}


def compare(before: Json, after: Json) -> Iterator[Difference]:
    """Yield the differences of two forms."""
    for word in sorted(before["about"].keys() | after["about"].keys()):
        if before["about"].get(word) != after["about"].get(word):
            yield Difference(group="document", name=word, change=CHANGED)
    refusals, refused = before["shared"]["refusals"], after["shared"]["refusals"]
    for status in sorted(refusals.keys() | refused.keys()):
        if refusals.get(status) != refused.get(status):
            yield Difference(group="document", name=f"refusals with {status}", change=CHANGED)
    old, new = _operations(before), _operations(after)
    yield from compare_names(ROUTES, old, new)
    schemas = SchemaComparison(before["schemas"], after["schemas"])
    for name in sorted(old.keys() & new.keys()):
        yield from _compare_operation(name, old[name], new[name], schemas)


def _is_shared(name: str) -> bool:
    """True for what means the same in every operation: not so the filters of lists."""
    return not name.startswith("query ") or name in {"query limit", "query cursor"}


def _operation(operation: Json, route: Route | None, shared: "Shared") -> Json:
    found: dict[str, Any] = {name: operation[name] for name in _PLAIN if name in operation}
    parameters = {f"{one['in']} {one['name']}": one for one in operation.get("parameters", ())}
    if "requestBody" in operation:
        found["requestBody"] = operation["requestBody"]
    responses: Json = operation["responses"]
    refusals = {status: one for status, one in responses.items() if _PROBLEM in one.get("content", {})}
    found["responses"] = {status: one for status, one in responses.items() if status not in refusals}
    found["responses"] |= shared.fold(refusals, shared.refusals, found, "refusals")
    if own := shared.fold(parameters, shared.parameters, found, "sharedParameters"):
        found["parameters"] = own
    if route is not None:
        found["who"] = ["operator", *sorted(route.scopes)]
        found |= {} if route.limit == SMALL_BODY else {"bodyBytes": route.limit}
    return found


def _operations(form: Json) -> Mapping[str, Json]:
    """Return the operations with the parameters that they name."""
    parameters = form["shared"]["parameters"]
    whole: dict[str, Json] = {}
    for name, operation in form["operations"].items():
        named = {one: parameters[one] for one in operation.get("sharedParameters", ())}
        whole[name] = {**operation, "parameters": {**named, **operation.get("parameters", {})}}
    return whole


def _sorted_required(schema: object) -> Any:
    """Sort `required`, whose order means nothing."""
    if isinstance(schema, list):
        return [_sorted_required(item) for item in cast("Sequence[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = {name: _sorted_required(value) for name, value in cast("Mapping[str, object]", schema).items()}
    required: object = members.get("required")
    return members | ({"required": sorted(cast("list[str]", required))} if isinstance(required, list) else {})


def _compare_operation(name: str, before: Json, after: Json, schemas: SchemaComparison) -> Iterator[Difference]:
    for word in _PLAIN:
        if before.get(word) != after.get(word):
            yield _changed(name, f"{word} {before.get(word)!r} → {after.get(word)!r}")
    for who in sorted({*before.get("who", ())} ^ {*after.get("who", ())}):
        is_lost = who in before.get("who", ())
        yield _changed(name, f"{'refuses' if is_lost else 'accepts'} the scope {who}", is_breaking=is_lost)
    old, new = before.get("bodyBytes", SMALL_BODY), after.get("bodyBytes", SMALL_BODY)
    if old != new:
        yield _changed(name, f"bytes of a body {old} → {new}", is_breaking=new < old)
    if lost := sorted({*before.get("refusals", ())} ^ {*after.get("refusals", ())}):
        yield _changed(name, f"documented refusals differ in {', '.join(lost)}")
    yield from _compare_parameters(name, before["parameters"], after["parameters"], schemas)
    yield from _compare_body(name, before.get("requestBody"), after.get("requestBody"), schemas)
    yield from _compare_responses(name, before["responses"], after["responses"], schemas)


def _changed(name: str, detail: str, *, is_breaking: bool = False) -> Difference:
    return Difference(group=ROUTES, name=name, change=CHANGED, detail=detail, is_breaking=is_breaking)


def _compare_parameters(name: str, before: Json, after: Json, schemas: SchemaComparison) -> Iterator[Difference]:
    for parameter in sorted(before.keys() | after.keys()):
        place = f"{name} {parameter}"
        if parameter not in after:
            yield Difference(group=PARAMETERS, name=place, change=REMOVED, is_breaking=True)
        elif parameter not in before:
            must = after[parameter].get("required", False)
            yield Difference(
                group=PARAMETERS, name=place, change=ADDED, detail="required" if must else "", is_breaking=must
            )
        else:
            yield from _compare_parameter(place, before[parameter], after[parameter], schemas)


def _compare_parameter(place: str, old: Json, new: Json, schemas: SchemaComparison) -> Iterator[Difference]:
    if old.get("required", False) is not new.get("required", False):
        must = new.get("required", False)
        yield Difference(group=PARAMETERS, name=place, change=CHANGED, detail=f"required: {must}", is_breaking=must)
    texts = [{key: one[key] for key in ("description", "example") if key in one} for one in (old, new)]
    yield from schemas.compare({**old["schema"], **texts[0]}, {**new["schema"], **texts[1]}, place, is_sent=True)


def _compare_body(
    name: str, before: Json | None, after: Json | None, schemas: SchemaComparison
) -> Iterator[Difference]:
    if before is None or after is None:
        if before is not after:
            yield _changed(name, "has no body" if after is None else "has a body", is_breaking=True)
        return
    if before["required"] is not after["required"]:
        must = after["required"]
        yield _changed(name, "needs a body" if must else "needs no body", is_breaking=must)
    old, new = before["content"], after["content"]
    for media_type in sorted(old.keys() | new.keys()):
        if media_type not in new or media_type not in old:
            is_lost = media_type in old
            verb = "refuses" if is_lost else "accepts"
            yield _changed(name, f"{verb} bodies of the type {media_type}", is_breaking=is_lost)
            continue
        if old[media_type].get("example") != new[media_type].get("example"):
            yield Difference(group="texts", name=name, change=CHANGED, detail="example of the body")
        yield from schemas.compare(old[media_type]["schema"], new[media_type]["schema"], f"{name} body", is_sent=True)


def _compare_responses(name: str, before: Json, after: Json, schemas: SchemaComparison) -> Iterator[Difference]:
    for status in sorted(before.keys() | after.keys()):
        if status not in after or status not in before:
            is_lost = status in before
            verb = "never responds" if is_lost else "may respond"
            yield _changed(name, f"{verb} {status}", is_breaking=is_lost)
        else:
            yield from _compare_response(f"{name} {status}", before[status], after[status], schemas)


def _compare_response(place: str, before: Json, after: Json, schemas: SchemaComparison) -> Iterator[Difference]:
    old, new = before.get("headers", {}), after.get("headers", {})
    for header in sorted(old.keys() | new.keys()):
        if old.get(header) != new.get(header):
            yield _changed(place, f"header {header}", is_breaking=_is_sure(old, header) and not _is_sure(new, header))
    contents, shown = before.get("content", {}), after.get("content", {})
    if contents.keys() != shown.keys():
        yield _changed(place, f"content {sorted(contents)} → {sorted(shown)}", is_breaking=bool(contents))
    for media_type in sorted(contents.keys() & shown.keys()):
        yield from schemas.compare(contents[media_type]["schema"], shown[media_type]["schema"], place, is_sent=False)


def _is_sure(headers: Json, name: str) -> bool:
    return name in headers and headers[name].get("required", False) is True
