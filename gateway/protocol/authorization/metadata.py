"""Metadata of a tenant's authorization server (RFC 8414), at the path of that RFC and at those of OpenID discovery.

The metadata exists only for tenants with an issuer at which the gateway signs people in.
"""

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.errors import NotFound
from gateway.identity.dpop import PROOF_ALGORITHMS
from gateway.identity.oauth.clients import accepts_documents
from gateway.identity.oauth.requests import scopes_of
from gateway.web.people.tenants import TenantLookup, sign_in_issuers

PATHS = (
    "/.well-known/oauth-authorization-server/t/{tenant}",
    "/.well-known/openid-configuration/t/{tenant}",
    "/t/{tenant}/.well-known/openid-configuration",
)
CLIENT_AUTHENTICATION = ("none", "client_secret_basic", "client_secret_post")
_HEADERS = {"cache-control": "no-store"}


def metadata_routes(tenants: TenantLookup) -> list[Route]:
    """Return the routes of the metadata of all tenants."""

    async def show(request: Request) -> Response:
        slug, found = await tenants.find(request)
        if not sign_in_issuers(found):
            raise NotFound("not found")
        content = describe(found, f"{tenants.origin_of(request)}/t/{slug}")
        return Response(orjson.dumps(content), media_type="application/json", headers=_HEADERS)

    return [Route(path, show, methods=["GET"]) for path in PATHS]


def describe(found: TenantIssuers, issuer: str) -> dict[str, object]:
    """Return the metadata of the authorization server with this identifier."""
    scopes = sorted(scopes_of(found))
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        **({"registration_endpoint": f"{issuer}/oauth/register"} if has_registration(found) else {}),
        **({"scopes_supported": scopes} if scopes else {}),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": list(CLIENT_AUTHENTICATION),
        "revocation_endpoint_auth_methods_supported": list(CLIENT_AUTHENTICATION),
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": PROOF_ALGORITHMS,
        "client_id_metadata_document_supported": accepts_documents(found),
        "authorization_response_iss_parameter_supported": True,
    }


def has_registration(found: TenantIssuers) -> bool:
    """True if clients may register themselves at the tenant."""
    clients = [issuer.sign_in for issuer in sign_in_issuers(found)]
    return any(client is not None and client.registration for client in clients)
