"""Endpoints that validate primitives without storing them; every other endpoint follows from the declarations."""

from functools import partial
from typing import Any

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Route
from gateway.admin.responses.primitives import PrimitiveValid
from gateway.catalog.kinds.primitives import COLLECTIONS, PrimitiveCollection
from gateway.web.kinds.models import models_of
from gateway.web.models import BodyModel, NoQuery


async def validate(
    collection: PrimitiveCollection[Any], admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]
) -> AdminResponse:
    """Validate a primitive without storing it."""
    models = models_of(collection.kind)
    wanted = models.compose(call.body, models.key_of(call.body), None)
    made, replaces = await collection.validate(call.tenant, admin.catalog, wanted, by=call.by)
    return AdminResponse(content=PrimitiveValid.of(made, made.status, replaces))


def _route(collection: PrimitiveCollection[Any]) -> Route:
    kind = collection.kind
    return endpoint(
        "POST",
        f"/tenants/{{t}}/{kind.plural}/validate",
        partial(validate, collection),
        models_of(kind).create,
        query=NoQuery,
        responses={200: PrimitiveValid},
        called=f"validate_{kind.name}",
        summary=f"Validate {kind.one} without storing it; a stored one of the same name is treated as replaced.",
        problems=frozenset({409, 422, 429}),
        work=WorkKind.CHECK,
    )


ENDPOINTS = tuple(map(_route, COLLECTIONS.values()))
