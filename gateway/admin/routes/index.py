"""The routes below `/admin/v1` and their OpenAPI document, built from the endpoint tables of all nouns."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

import orjson
from starlette.routing import BaseRoute
from starlette.routing import Route as StarletteRoute

from gateway.admin.admission import AdminLimits
from gateway.admin.dispatch import DocumentRoute, NotFoundRoute, PathDispatcher, RequestGate
from gateway.admin.endpoint import AdminDependencies, Route
from gateway.admin.kinds import KindEndpoints
from gateway.admin.openapi import reference_page
from gateway.admin.openapi.document import DOCUMENT, describe
from gateway.admin.openapi.reference import write_reference
from gateway.admin.routes import (
    approvals,
    audit,
    credentials,
    doctor,
    explanations,
    json_schemas,
    live_sources,
    manifests,
    overrides,
    policies,
    primitives,
    tenants,
    try_calls,
    updates,
    webhook_endpoints,
)
from gateway.admin.routes.identity import (
    access_rules,
    issuers,
    keys,
    people,
    secret_keys,
)
from gateway.admin.routes.sources import sources, uploads, versions
from gateway.admin.singletons import SingletonEndpoints
from gateway.catalog.kinds.index import COLLECTIONS, OPERATORS_COLLECTIONS
from gateway.catalog.kinds.keys import KEYS
from gateway.catalog.kinds.primitives import TOOLS
from gateway.catalog.kinds.singletons import RETENTION, SINGLE_OBJECTS

ROOT = "/admin/v1"
ENDPOINTS: Sequence[Route] = (
    *tenants.ENDPOINTS,
    *keys.ENDPOINTS,
    *issuers.ENDPOINTS,
    *people.ENDPOINTS,
    *access_rules.ENDPOINTS,
    *overrides.ENDPOINTS,
    *sources.ENDPOINTS,
    *versions.ENDPOINTS,
    *uploads.ENDPOINTS,
    *live_sources.ENDPOINTS,
    *primitives.ENDPOINTS,
    *try_calls.ENDPOINTS,
    *explanations.ENDPOINTS,
    *updates.ENDPOINTS,
    *webhook_endpoints.ENDPOINTS,
    *(
        route
        for one in (*OPERATORS_COLLECTIONS, *COLLECTIONS)
        for route in KindEndpoints(collection=one, has_change=one is not TOOLS, has_rotation=one is not KEYS).routes()
    ),
    *credentials.ENDPOINTS,
    *policies.ENDPOINTS,
    *manifests.ENDPOINTS,
    *(
        route
        for single in SINGLE_OBJECTS
        for route in SingletonEndpoints(single=single, has_get=single is not RETENTION).routes()
    ),
    *approvals.ENDPOINTS,
    *audit.ENDPOINTS,
    *json_schemas.ENDPOINTS,
    *doctor.ENDPOINTS,
    *secret_keys.ENDPOINTS,
)
_LAST = ("name", "id")
"""The path parameters that can be the last segment of a path and can equal a literal segment."""


def admin_routes(admin: AdminDependencies, gate: RequestGate) -> list[BaseRoute]:
    """Build the routes to mount at `/admin/v1`, including a fallback for all other paths."""
    routes = [
        StarletteRoute(_with_slashes(path), PathDispatcher(admin, gate, methods, fixed))
        for path, methods, fixed in collect_paths(ENDPOINTS)
    ]
    return [
        *routes,
        StarletteRoute(DOCUMENT, DocumentRoute(write_document, gate.limits)),
        StarletteRoute("/{rest:path}", NotFoundRoute([path for path, *_ in collect_paths(ENDPOINTS)])),
    ]


def reference_route(limits: AdminLimits) -> BaseRoute:
    """Build the route of the reference for people."""
    kind = "text/html; charset=utf-8"
    route = DocumentRoute(write_reference_page, limits, media_type=kind, headers=reference_page.HEADERS)
    return StarletteRoute(reference_page.PATH, route)


def _with_slashes(path: str) -> str:
    """Permit slashes in a person's subject: servers decode `%2F` before routes are matched."""
    return path.replace("/people/{id}", "/people/{id:path}")


@cache
def write_document() -> bytes:
    """Serialize the OpenAPI document.

    The result is cached for the process, because it is the same for every gateway and takes long to build.
    """
    return orjson.dumps(describe(ENDPOINTS, server=ROOT))


@cache
def write_reference_page() -> bytes:
    """Write the page of the reference, which is cached like the document."""
    document = describe(ENDPOINTS, server=ROOT)
    return reference_page.write_page(write_reference(document, ENDPOINTS), ROOT).encode()


def collect_paths(endpoints: Sequence[Route]) -> list[tuple[str, Mapping[str, Route], Mapping[str, str]]]:
    """Group endpoints by path. Return path, methods, and the parameter that a literal last segment replaces.

    A path such as `/tools/validate` also has the methods of `/tools/{name}`, because a tool can have the name
    `validate`. Literal paths come first, because the first matching path is used.
    """
    by_path: dict[str, dict[str, Route]] = defaultdict(dict)
    for endpoint in endpoints:
        by_path[endpoint.path][endpoint.method] = endpoint
    found: list[tuple[str, Mapping[str, Route], Mapping[str, str]]] = []
    for path, methods in by_path.items():
        parent, _, last = path.rpartition("/")
        shadowed = next((name for name in _LAST if f"{parent}/{{{name}}}" in by_path), None)
        if shadowed is None or last.startswith("{"):
            found.append((path, methods, {}))
        else:
            named = by_path[f"{parent}/{{{shadowed}}}"]
            found.append((path, {**named, **methods}, {shadowed: last}))
    return sorted(found, key=lambda route: "{" in route[0].rpartition("/")[2])
