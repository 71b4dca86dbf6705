"""Reads the stored complete body of a truncated tool result, as a resource that no list contains."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping

from gateway.definitions.policy.primitive_policy import PrimitivePolicy
from gateway.domain.identifiers import PrimitiveId
from gateway.domain.primitives import Family, Primitive
from gateway.domain.results import Contents
from gateway.domain.tenancy.policy import Decision, Judgement
from gateway.domain.tools import PrimitiveOrigin
from gateway.errors import NotFound
from gateway.handlers.binding import BoundResource
from gateway.handlers.interfaces import Call, Prepared
from gateway.redis.caches.result_overflow import SCHEME, ResultOverflow, StoredResult
from gateway.registry.registry import Registry

_PREFIX = f"{SCHEME}://"
_ANY = "application/octet-stream"
_ALLOWED = PrimitivePolicy(judgement=Judgement(decision=Decision.ALLOW, reason="the rest of an own result"))


def is_overflow_uri(uri: str) -> bool:
    """True if the URI has the scheme of stored results."""
    return uri.startswith(_PREFIX)


def bind_overflow(overflow: ResultOverflow, registry: Registry, uri: str) -> BoundResource:
    """Bind the stored result at the URI for this principal; the call pipeline reads it like any other resource."""
    snapshot = registry.view.snapshot
    return BoundResource(
        tenant=registry.principal.tenant,
        primitive=Primitive(
            id=PrimitiveId("builtin:leftover"),
            family=Family.RESOURCE,
            name=uri,
            definition=b"{}",
            origin=PrimitiveOrigin.BUILTIN,
        ),
        uri=uri,
        handler=_OverflowReader(overflow, uri),
        policy=_ALLOWED,
        limits=snapshot.policy.limits,
        variables={},
    )


class _OverflowReader:
    """Reads one stored result (`gateway.handlers.interfaces.ResourceHandler`)."""

    def __init__(self, overflow: ResultOverflow, uri: str) -> None:
        self._overflow = overflow
        self._uri = uri

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        return arguments

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        del arguments
        return Prepared(
            digest=hashlib.blake2b(self._uri.encode("utf-8", "surrogatepass"), digest_size=32).digest(),
            named=self._uri,
        )

    async def preview(self, prepared: Prepared) -> str:
        return prepared.summary

    async def run(self, prepared: Prepared, call: Call) -> Contents:
        del prepared
        found = await self._overflow.read(call.principal.tenant, call.principal.subject, self._uri)
        if found is None:
            raise NotFound("the resource has expired or does not exist")
        return Contents(contents=(_content(self._uri, found),))


def _content(uri: str, found: StoredResult) -> Mapping[str, object]:
    """Text if the bytes are valid UTF-8, whatever their declared type; a blob otherwise."""
    mime_type = found.content_type.partition(";")[0].strip() or _ANY
    try:
        return {"uri": uri, "mimeType": mime_type, "text": found.body.decode()}
    except UnicodeDecodeError:
        return {"uri": uri, "mimeType": mime_type, "blob": b64encode(found.body).decode()}
