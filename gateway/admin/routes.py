"""The routes below /admin/v1, all made from the tables of the nouns, and the OpenAPI document of the same tables."""

from collections import defaultdict
from collections.abc import Sequence

import orjson
from starlette.routing import BaseRoute
from starlette.routing import Route as Place

from gateway.admin import audit, doctor, keys, policies, sources, tenants, tools
from gateway.admin.description import DOCUMENT, describe
from gateway.admin.dispatch import Document, Missing, Path
from gateway.admin.endpoints import Admin, Route
from gateway.catalog.catalog import Catalog
from gateway.catalog.doctor import Doctor
from gateway.identity.credentials import Credentials
from gateway.registry.cursors import Cursors

ROOT = "/admin/v1"
ENDPOINTS: Sequence[Route] = (
    *tenants.ENDPOINTS,
    *keys.ENDPOINTS,
    *sources.ENDPOINTS,
    *tools.ENDPOINTS,
    *policies.ENDPOINTS,
    *audit.ENDPOINTS,
    *doctor.ENDPOINTS,
)


def admin_routes(catalog: Catalog, credentials: Credentials, examiner: Doctor) -> list[BaseRoute]:
    """What is mounted at /admin/v1; whatever else is asked for there is answered here too."""
    admin = Admin(catalog=catalog, cursors=Cursors(catalog.cursor_key), doctor=examiner)
    by_path: dict[str, dict[str, Route]] = defaultdict(dict)
    for endpoint in ENDPOINTS:
        by_path[endpoint.path][endpoint.method] = endpoint
    places = [Place(path, Path(admin, credentials, methods)) for path, methods in by_path.items()]
    document = Document(orjson.dumps(describe(ENDPOINTS, server=ROOT)))
    return [*places, Place(DOCUMENT, document), Place("/{rest:path}", Missing())]
