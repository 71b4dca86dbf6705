"""Example bodies of the admin document, sent unchanged."""

from typing import Any

import pytest

from tests.support.gateway import RunningGateway

_ORDER = ("tenants", "sources", "resources")
"""Examples that others need come first; the rest follows by name."""


@pytest.fixture
async def document(gateway: RunningGateway) -> dict[str, Any]:
    """The document as it is served."""
    served: dict[str, Any] = (await gateway.http.get("/admin/v1/openapi.json")).json()
    return served


async def test_every_example_is_accepted(gateway: RunningGateway, document: dict[str, Any]) -> None:
    """Ours: an example that is copied from the document works, in the order of making and changing (ADM-1)."""
    made: dict[str, str] = {}
    for path in sorted(document["paths"], key=_rank):
        operation = document["paths"][path].get("post", {})
        if "201" in operation.get("responses", {}):
            answer = await gateway.admin.post(path.replace("{t}", "acme"), json=_example(operation))
            assert answer.status_code == 201, (path, answer.text)
            made[path] = answer.headers["location"].removeprefix("/admin/v1")

    made["/tenants/{t}/tools"] = "/tenants/acme/tools/list_pets"  # the example of a change is one of an imported tool
    changed = sorted(sorted(made.items(), reverse=True), key=lambda one: one[0].endswith("/sources"))
    for path, place in changed:  # the source last: its prefix renames the tool
        paths: dict[str, dict[str, Any]] = document["paths"]
        item = paths.get(path + "/{name}") or paths.get(path + "/{id}") or {}
        for method in ("put", "patch"):
            if method in item and (method, path) != ("put", "/tenants/{t}/tools"):
                answer = await gateway.admin.request(method, place, json=_example(item[method]))
                assert answer.status_code == 200, (method, path, answer.text)


def _rank(path: str) -> tuple[int, str]:
    noun = path.rpartition("/")[2]
    return _ORDER.index(noun) if noun in _ORDER else len(_ORDER), path


def _example(operation: dict[str, Any]) -> object:
    example: object = operation["requestBody"]["content"]["application/json"]["example"]
    return example
