"""Null and values of other types in each member of each body of the admin API: they are valid or a fault."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from gateway.admin.requests.documents import DocumentSent
from gateway.admin.routes.index import ENDPOINTS
from gateway.admin.validation import read_body
from gateway.errors import InvalidBody
from gateway.web.models import BodyModel, NoBody

MODELS = {route.body.__name__: route.body for route in ENDPOINTS if not issubclass(route.body, NoBody | DocumentSent)}
VALUES: tuple[object, ...] = (None, True, 0, "", [], {})
MAX_DEPTH = 8

Schema = Mapping[str, Any]


def _bodies(schema: Schema, definitions: Schema, value: object, depth: int = 0) -> Iterator[object]:
    """JSON of the schema with the value at one place: itself, then each member, element and alternative."""
    yield value
    if depth == MAX_DEPTH:
        return
    if name := schema.get("$ref"):
        yield from _bodies(definitions[name.rpartition("/")[2]], definitions, value, depth + 1)
    for alternative in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _bodies(alternative, definitions, value, depth + 1)
    if isinstance(items := schema.get("items"), dict):
        yield from ([element] for element in _bodies(cast("Schema", items), definitions, value, depth + 1))
    members: Schema = schema.get("properties", {})
    kinds = {name: member["const"] for name, member in members.items() if "const" in member}
    for name, member in members.items():
        yield from ({**kinds, name: inner} for inner in _bodies(member, definitions, value, depth + 1))
    if isinstance(further := schema.get("additionalProperties"), dict):
        yield from ({"a": inner} for inner in _bodies(cast("Schema", further), definitions, value, depth + 1))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
async def test_any_json_is_valid_or_a_fault_of_the_body(model: type[BodyModel]) -> None:
    """Ours: a null where a member may be absent is no error of the gateway, at any depth (ADM-1)."""
    schema = model.model_json_schema()
    sent = {json.dumps(body) for value in VALUES for body in _bodies(schema, schema.get("$defs", {}), value)}
    assert len(sent) > len(VALUES)
    wrong: list[str] = []
    for body in sorted(sent):
        try:
            await read_body(body.encode(), model)
        except InvalidBody:
            continue
        except Exception as error:  # each other one is answered with 500
            wrong.append(f"{body}: {error!r}")
    assert not wrong
