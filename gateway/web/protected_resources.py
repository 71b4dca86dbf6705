"""Protected resources: metadata (RFC 9728), the challenges that refer clients to it (RFC 6750, RFC 9449), and the
gateway's public keys.

The challenge has the scheme that the client used. The metadata exists for tenants with an enabled issuer, and only
their challenges refer to it: a tenant that accepts keys alone looks like a missing one. For an issuer with a sign-in
client, the gateway itself is the authorization server in the metadata of MCP URLs, but not in that of the admin API,
for which the gateway issues no tokens.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.domain.refusals import ProofRefused, ScopeMissing
from gateway.domain.tenancy.issuers import Issuer
from gateway.errors import GatewayError, LimitExceeded, NotFound, Unauthenticated, Unavailable
from gateway.identity.authenticator import Authenticator
from gateway.identity.dpop import PROOF_ALGORITHMS
from gateway.identity.people import METADATA_PATH, People, Resource, Target
from gateway.web.authentication import address_of, is_bound, target_of
from gateway.web.headers import headers_of

_HEADERS = {"cache-control": "no-store"}


def metadata_route(credentials: Authenticator, people: People) -> Route:
    """Return the route of the metadata of all protected resources."""

    async def show(request: Request) -> Response:
        url = target_of(request.scope)
        path = url.path.removeprefix(METADATA_PATH)
        target = Target(url.base, path.removesuffix("/") if path.startswith("/t/") else path)  # as `PrefixRouter` does
        resource = people.find_resource(target)
        if resource is None or resource.path != target.path:  # guard: metadata-of-the-resource
            raise NotFound("not found")
        address = address_of(request.scope)
        found = await people.directory.issuers_of(resource.slug, credentials.is_suspect(address))
        if found is None:
            credentials.count_failure(address)  # guard: metadata-failures-counted
            raise NotFound("not found")
        scopes = sorted({scope for each in found.issuers for scope in each.scopes_at(resource.profile or None)})
        content: dict[str, object] = {
            "resource": resource.url,
            "authorization_servers": _authorization_servers(resource, found.issuers),
            "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": PROOF_ALGORITHMS,
            **({"scopes_supported": scopes} if scopes else {}),
            **({"dpop_bound_access_tokens_required": True} if all(one.requires_dpop for one in found.issuers) else {}),
        }
        return Response(orjson.dumps(content), media_type="application/json", headers=_HEADERS)

    return Route(METADATA_PATH + "{rest:path}", show, methods=["GET"])


def _authorization_servers(resource: Resource, issuers: Sequence[Issuer]) -> list[str]:
    """Return the gateway itself in place of issuers with a sign-in client, but for the admin API only the issuers."""
    if resource.is_admin:  # guard: admin-metadata-issuers
        return [each.url for each in issuers]
    own = [resource.issuer] if any(each.sign_in is not None for each in issuers) else []
    return [*own, *(each.url for each in issuers if each.sign_in is None)]


def key_set_route(keys: Mapping[str, object]) -> Route:
    """Return the JWKS route (RFC 7517): the public keys that verify the gateway's assertions."""
    body = orjson.dumps(keys)

    async def show(_: Request) -> Response:
        return Response(body, media_type="application/jwk-set+json", headers={"cache-control": "public, max-age=300"})

    return Route("/.well-known/jwks.json", show, methods=["GET"])


async def challenge(scope: MutableMapping[str, Any], credentials: Authenticator, error: GatewayError) -> bytes | None:
    """Return the `WWW-Authenticate` header of a refusal; None if the error does not concern the credential.

    The edge adds the error code if the client sent a credential.
    """
    if not isinstance(error, Unauthenticated | ScopeMissing):
        return None
    sent = headers_of(scope).get(b"authorization")
    is_dpop = isinstance(error, ProofRefused) or (sent is not None and is_bound(sent.decode("latin-1")))
    parts = [f'algs="{" ".join(PROOF_ALGORITHMS)}"'] if is_dpop else []
    if isinstance(error, ProofRefused):
        parts.append('error="invalid_dpop_proof"')
    if isinstance(error, ScopeMissing):
        parts.append('error="insufficient_scope"')
        if error.scopes:
            parts.append(f'scope="{" ".join(error.scopes)}"')
    url = await _metadata_url(scope, credentials)
    if url is not None:
        parts.append(f'resource_metadata="{url}"')
    return (("DPoP " if is_dpop else "Bearer ") + ", ".join(parts)).strip().encode("latin-1", "replace")


async def _metadata_url(scope: MutableMapping[str, Any], credentials: Authenticator) -> str | None:
    """Return the URL of the metadata of the requested resource; None if there is none, or the issuers cannot be read.

    A reference to missing metadata would have the client begin a sign-in that fails, instead of naming the wrong key.
    """
    if (people := credentials.people) is None:
        return None
    resource = people.find_resource(target_of(scope))
    if resource is None:
        return None
    try:
        found = await people.directory.issuers_of(resource.slug, credentials.is_suspect(address_of(scope)))
    except (LimitExceeded, Unavailable):
        return None
    return None if found is None else resource.metadata_url
