"""Endpoints of the clients of a tenant's authorization server."""

from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun, each
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.list_search import CLIENTS
from gateway.admin.requests.grants import ClientCreate, ClientListQuery, ClientUpdate
from gateway.admin.responses.grants import ClientMinted, ClientPage, ClientShown
from gateway.catalog.etags import tag_of
from gateway.catalog.identity import oauth_clients
from gateway.catalog.identity.oauth_clients import ClientDraft
from gateway.domain.tenancy.grants import OAuthClient
from gateway.web.models import NoQuery

_NOUN: Noun[OAuthClient] = Noun(
    singular="client", path="/tenants/{t}/clients", key="id", shown=ClientShown, show=each(ClientShown.of)
)


async def create_client(admin: AdminDependencies, call: AdminRequest[ClientCreate, NoQuery]) -> AdminResponse:
    """Register a client of the authorization server; only this response contains its secret, if it has one."""
    body = call.body
    draft = ClientDraft(name=body.name, redirect_uris=tuple(body.redirect_uris), is_confidential=body.confidential)
    made, secret = await oauth_clients.create_client(call.tenant, admin.catalog, draft, by=call.by)
    return _NOUN.to_created(call, made, _minted(made, secret))


async def update_client(admin: AdminDependencies, call: AdminRequest[ClientUpdate, NoQuery]) -> AdminResponse:
    """Change the name or the redirect URIs of a client."""

    def revise(client: OAuthClient) -> OAuthClient:
        sent = dict(call.body.sent())
        if call.body.redirect_uris is not None:
            sent["redirect_uris"] = tuple(call.body.redirect_uris)
        return replace(client, **sent)

    update = partial(oauth_clients.update_client, call.tenant, admin.catalog, call.path["id"], revise)
    return await _NOUN.respond(admin, call, await update(by=call.by, expected=call.expected))


async def rotate_client(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Replace the secret of a client; the former one is refused at once. Only this response contains the secret."""
    rotate = partial(oauth_clients.rotate_client, call.tenant, admin.catalog, call.path["id"])
    return _minted(*await rotate(by=call.by, expected=call.expected))


def _minted(client: OAuthClient, secret: str | None) -> AdminResponse:
    return AdminResponse(content=ClientMinted.with_secret(client, secret), tag=tag_of(client))


ENDPOINTS = (
    _NOUN.list_route(
        "List the clients of the authorization server, without their secrets.",
        oauth_clients.page_clients,
        CLIENTS,
        ClientListQuery,
        ClientPage,
    ),
    _NOUN.create_route(create_client, ClientCreate, responses={201: ClientMinted}, problems={429}),
    _NOUN.show_route("Show a client, without its secret.", oauth_clients.get_client),
    _NOUN.update_route(update_client, ClientUpdate),
    _NOUN.delete_route("Delete a client with the consents to it; its tokens are refused.", oauth_clients.remove_client),
    _NOUN.action_route("rotate", rotate_client, responses={200: ClientMinted}, problems={409}),
)
