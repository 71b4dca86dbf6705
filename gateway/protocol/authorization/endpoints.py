"""The endpoints of a tenant's authorization server, below `/t/{tenant}/oauth`: authorize, token, revoke, register.

The size of a request is limited, and each parameter is read once. The client is looked up, and its redirect URI is
compared as text. Then the SDK's handler applies the protocol (`sdk_provider`). Its responses are completed: responses
to a client's redirect URI name the issuer, and errors reach it only through a link that the person follows.
"""

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import unquote, urlencode

import orjson
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.revoke import RevocationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.json_text import load_json
from gateway.domain.refusals import ClientRefused, ProofRefused
from gateway.domain.tenancy.grants import ClientKind, OAuthClient
from gateway.domain.tenancy.redirect_uris import is_registered
from gateway.errors import BadInput, GatewayError, InvalidBody, LimitExceeded, NotFound, Unavailable
from gateway.identity.authenticator import Authenticator
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.identity.oauth.client_documents import read_name, read_redirect_uris
from gateway.identity.oauth.clients import ClientDirectory
from gateway.protocol.authorization.limits import (
    MAX_DESCRIPTION_LENGTH,
    MAX_METADATA_BYTES,
    MAX_PARAMETERS,
    REGISTRATION_BODY_S,
)
from gateway.protocol.authorization.metadata import CLIENT_AUTHENTICATION, has_registration, metadata_routes
from gateway.protocol.authorization.request_grants import AuthorizationParts, RequestGrants
from gateway.protocol.authorization.sdk_provider import ClientRequest, SdkProvider, urls_of
from gateway.web.authentication import address_of, proof_of
from gateway.web.bodies import declared_length, read_body
from gateway.web.html.documents import page, respond
from gateway.web.html.forms import read_fields, read_form
from gateway.web.people.consent_pages import back_content
from gateway.web.people.sign_in import PAGE_HEADERS, SignInPages
from gateway.web.people.tenants import sign_in_issuers
from gateway.web.problems import correlation_id_of, status_of

_ROOT = "/t/{tenant}/oauth"
_SLOTS, _QUEUE = 64, 256
_REGISTRATION_RATE, _REGISTRATION_BURST = 0.2, 10.0
"""Registrations per second and replica of one address; a tenant may have ten times as many."""
_TENANT_FACTOR = 10
_DESCRIPTION = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]+")
"""Characters that an error description cannot have (RFC 6749 section 5.2)."""
_STORED_METADATA = ("token_endpoint_auth_method", "grant_types", "response_types", "scope", "application_type")
_NO_STORE = {"cache-control": "no-store"}

Answer = Callable[[Request], Awaitable[Response]]


class AuthorizationEndpoints:
    """The endpoints of all tenants."""

    def __init__(
        self, credentials: Authenticator, pages: SignInPages, clients: ClientDirectory, parts: AuthorizationParts
    ) -> None:
        self._credentials = credentials
        self._pages = pages
        self._clients = clients
        self._parts = parts
        self._addresses = TokenBuckets(rate=_REGISTRATION_RATE, burst=_REGISTRATION_BURST)
        self._tenants = TokenBuckets(
            rate=_REGISTRATION_RATE * _TENANT_FACTOR, burst=_REGISTRATION_BURST * _TENANT_FACTOR
        )
        self.slot_pool = FairSlotPool("requests for tokens", slots=_SLOTS, queue=_QUEUE)
        """Keyed by the tenant in the path, because a provider may be contacted before tokens are issued."""

    @property
    def routes(self) -> list[Route]:
        """The routes of all endpoints and of the metadata."""
        return [
            *metadata_routes(self._pages.tenants),
            Route(f"{_ROOT}/authorize", self._pages.guarded(self._authorize), methods=["GET"]),
            Route(f"{_ROOT}/token", self._with_protocol_errors(self._issue), methods=["POST"]),
            Route(f"{_ROOT}/revoke", self._with_protocol_errors(self._revoke), methods=["POST"]),
            Route(f"{_ROOT}/register", self._with_protocol_errors(self._register), methods=["POST"]),
        ]

    async def _authorize(self, request: Request) -> Response:
        fields = read_fields(request.url.query, limit=MAX_PARAMETERS)
        grants = await self._open(request)
        client_id, address = fields.get("client_id", ""), address_of(request.scope)
        client = await self._clients.find(grants.found, client_id, address=address)
        redirect_uri = fields.get("redirect_uri", "")
        if not is_registered(redirect_uri, client.redirect_uris):  # guard: authorize-redirect-registered
            raise ClientRefused("The application asks for a redirect URI that is not one of its own.")
        if urls_of(redirect_uri) is None:
            raise ClientRefused("The application's redirect URI names a host that cannot exist.")
        grants = _with_client(grants, client.id, (redirect_uri,))
        provider = SdkProvider(grants, ClientRequest(client=client, fields=fields))
        answer = await AuthorizationHandler(provider).handle(request)
        location = answer.headers.get("location", "")
        if location.startswith(f"/t/{grants.slug}/oauth/consent?"):
            return RedirectResponse(location, 303, headers=PAGE_HEADERS)
        return _authorization_error(client, redirect_uri, grants.issuer, location)

    async def _issue(self, request: Request) -> Response:
        grants, asked = await self._read(request)
        asked = replace(asked, thumbprint=await self._prove(request, grants))
        provider = SdkProvider(grants, asked)
        handler = TokenHandler(provider, ClientAuthenticator(provider))
        response: Response = await handler.handle(_with_form(request, asked.fields))
        if asked.thumbprint is None or response.status_code != 200:
            return response
        content = {**_members(bytes(response.body)), "token_type": "DPoP"}  # the SDK's model has no other type
        return Response(orjson.dumps(content), headers=_NO_STORE, media_type="application/json")

    async def _prove(self, request: Request, grants: RequestGrants) -> str | None:
        """Return the thumbprint of the key that the client proves (RFC 9449 section 5); None without a proof."""
        proofs = self._parts.people.proofs
        if proofs is None or "dpop" not in request.headers:
            return None
        url = f"{grants.issuer}/oauth/token"
        return await proofs.prove(grants.found.tenant, proof_of(request.scope), url=url)

    async def _revoke(self, request: Request) -> Response:
        grants, asked = await self._read(request)
        provider = SdkProvider(grants, asked)
        fields = {"client_secret": "", **asked.fields}  # the SDK's model requires the member
        return await RevocationHandler(provider, ClientAuthenticator(provider)).handle(_with_form(request, fields))

    async def _register(self, request: Request) -> Response:
        grants = await self._open(request)
        if not has_registration(grants.found):  # guard: registration-permitted
            raise NotFound("clients cannot register themselves at this tenant; ask its administrator")
        self._admit_registration(request, grants.found.tenant)
        declared = declared_length(request.scope)
        body = await read_body(
            request.receive, limit=MAX_METADATA_BYTES, deadline=REGISTRATION_BODY_S, declared=declared
        )
        try:
            metadata, redirect_uris = _client_metadata(_members(body))
        except ClientRefused as refused:
            return _error("invalid_redirect_uri", refused.message)
        except BadInput as refused:  # RFC 7591 section 3.2.2
            return _error("invalid_client_metadata", refused.message)
        grants = _with_client(grants, "", redirect_uris)
        handler = RegistrationHandler(SdkProvider(grants, ClientRequest()), ClientRegistrationOptions(enabled=True))
        return await handler.handle(_with_body(request, orjson.dumps(metadata), "application/json"))

    def _with_protocol_errors(self, answer: Answer) -> Answer:
        """Limit the concurrent requests, and convert refusals to the error responses of the protocol."""

        async def run(request: Request) -> Response:
            try:
                async with self.slot_pool.hold(request.path_params["tenant"]):
                    return self._complete_response(request, await answer(request))
            except (LimitExceeded, Unavailable) as error:
                return _error("temporarily_unavailable", error.message, error_of=error)
            except ProofRefused as error:
                self._credentials.count_failure(address_of(request.scope))  # guard: token-proofs-counted
                return _error("invalid_dpop_proof", error.message)
            except (NotFound, ClientRefused) as error:
                is_unknown = isinstance(error, ClientRefused)
                return _error("invalid_client" if is_unknown else "invalid_request", error.message, error_of=error)
            except BadInput as error:
                return _error("invalid_request", error.message)

        return run

    def _complete_response(self, request: Request, answer: Response) -> Response:
        """Complete a response of the SDK: limit error descriptions, and count failures for the client's address."""
        if answer.status_code < 400:
            answer.headers["cache-control"] = "no-store"
            return answer
        members = _members(bytes(answer.body))
        error = str(members.get("error", "invalid_request"))
        if error in {"invalid_client", "invalid_grant", "unauthorized_client"}:
            self._credentials.count_failure(address_of(request.scope))  # guard: token-failures-counted
        description = members.get("error_description")
        completed = _error(error, description if isinstance(description, str) else "", status=answer.status_code)
        if answer.status_code == 401:
            completed.headers["www-authenticate"] = "Basic"
        return completed

    async def _open(self, request: Request) -> RequestGrants:
        slug, found = await self._pages.tenants.find(request)
        if not sign_in_issuers(found):
            raise NotFound("There is no such page.")
        return RequestGrants(
            parts=self._parts,
            found=found,
            slug=slug,
            origin=self._pages.tenants.origin_of(request),
            correlation_id=correlation_id_of(request.scope),
        )

    async def _read(self, request: Request) -> tuple[RequestGrants, ClientRequest]:
        """Return the grants and the parameters of a request to the token or revocation endpoint."""
        grants, fields = await self._open(request), dict(await read_form(request, limit=MAX_PARAMETERS))
        basic = _basic_credentials(request.headers.get("authorization"))
        if basic is not None and "client_secret" in fields:  # guard: client-once
            raise BadInput("the client has to authenticate in one way: with the header, or in the body")
        if basic is not None and fields.setdefault("client_id", basic[0]) != basic[0]:  # guard: client-same
            raise BadInput("client_id must be the one in the Authorization header")
        client = await self._clients.find_for_tokens(grants.found, fields.get("client_id", ""))
        secret = fields.get("client_secret") if basic is None else basic[1]
        return grants, ClientRequest(client=client, fields=fields, secret=secret, is_basic=basic is not None)

    def _admit_registration(self, request: Request, tenant: str) -> None:
        for buckets, name in ((self._addresses, address_of(request.scope)), (self._tenants, tenant)):
            if wait_s := buckets.take(name):  # guard: registration-rate
                raise LimitExceeded("too many clients register themselves; retry later", retry_after_s=wait_s)


def _with_client(grants: RequestGrants, client: str, redirect_uris: tuple[str, ...]) -> RequestGrants:
    return RequestGrants(
        parts=grants.parts,
        found=grants.found,
        slug=grants.slug,
        origin=grants.origin,
        correlation_id=grants.correlation_id,
        client=client,
        redirect_uris=redirect_uris,
    )


def _authorization_error(client: OAuthClient, redirect_uri: str, issuer: str, location: str) -> Response:
    """Return the response to an invalid request: a redirect for a client that an administrator registered.

    For other clients, a page contains a link, because a redirect would make the gateway lead people to any client's URL
    (RFC 9700 section 4.11.2).
    """
    query = read_fields(location.partition("?")[2], limit=MAX_PARAMETERS)
    error, reason = query.get("error", "invalid_request"), _clean_description(query.get("error_description", ""))
    state = {"state": query["state"]} if "state" in query else {}
    added = urlencode({"error": error, "error_description": reason, **state, "iss": issuer})
    uri = f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{added}"
    if client.status.kind is ClientKind.REGISTERED:  # guard: authorize-error-link
        return RedirectResponse(uri, 303, headers=PAGE_HEADERS)
    text = f"The application's request cannot be served ({error}). {reason}"
    content = back_content(text, redirect_uri, uri)
    return respond(page("Not possible", content), error=BadInput(text), headers=PAGE_HEADERS)


def _members(body: bytes) -> Mapping[str, Any]:
    """Return the members of a JSON object.

    Raises:
        InvalidBody: the body is not a JSON object.
    """
    found = load_json(body)
    if not isinstance(found, dict):
        raise InvalidBody("the body must be a JSON object")
    return cast("Mapping[str, Any]", found)


def _client_metadata(members: Mapping[str, Any]) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the part of a client's metadata that is stored, and its redirect URIs unchanged.

    A client without `token_endpoint_auth_method` becomes a public client: it runs on a person's machine, where a
    secret cannot be protected.

    Raises:
        ClientRefused: a redirect URI is not accepted.
        BadInput: the authentication method is not supported.
    """
    redirect_uris = read_redirect_uris(members)
    kept = {name: members[name] for name in _STORED_METADATA if members.get(name) is not None}
    if kept.setdefault("token_endpoint_auth_method", "none") not in CLIENT_AUTHENTICATION:
        raise BadInput(f"token_endpoint_auth_method must be one of {', '.join(CLIENT_AUTHENTICATION)}")
    return {**kept, "redirect_uris": redirect_uris, "client_name": read_name(members, "an application")}, redirect_uris


def _basic_credentials(authorization: str | None) -> tuple[str, str] | None:
    """Return id and secret of a client in the Authorization header (RFC 6749 section 2.3.1); None if it has none.

    Raises:
        BadInput: the header does not have this form.
    """
    if authorization is None:
        return None
    scheme, _, encoded = authorization.partition(" ")
    try:
        client_id, mark, secret = base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        scheme, mark, client_id, secret = "", "", "", ""
    if scheme.lower() != "basic" or not mark:
        raise BadInput("the Authorization header must be Basic, with the client's id and secret")
    return unquote(client_id), unquote(secret)


def _with_form(request: Request, fields: Mapping[str, str]) -> Request:
    return _with_body(request, urlencode(fields).encode("ascii"), "application/x-www-form-urlencoded")


def _with_body(request: Request, body: bytes, media_type: str) -> Request:
    """Return the request with a new body, for the SDK's handlers, after the original body was read and limited."""
    kept = [
        (name, value) for name, value in request.scope["headers"] if name not in {b"content-type", b"content-length"}
    ]
    headers = [*kept, (b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({**request.scope, "headers": headers}, receive)


def _error(error: str, description: str, *, status: int = 400, error_of: GatewayError | None = None) -> Response:
    """Return an error response (RFC 6749 section 5.2, RFC 7591 section 3.2.2)."""
    headers = dict(_NO_STORE)
    if error_of is not None:
        status = status_of(error_of)
        if error_of.retry_after_s is not None:
            headers["retry-after"] = str(max(1, round(error_of.retry_after_s)))
    content = {"error": error, **({"error_description": text} if (text := _clean_description(description)) else {})}
    return Response(orjson.dumps(content), status, headers=headers, media_type="application/json")


def _clean_description(description: str) -> str:
    return _DESCRIPTION.sub(" ", description)[:MAX_DESCRIPTION_LENGTH].strip()
