"""Endpoints of named credentials; no response contains a secret."""

from functools import partial
from urllib.parse import quote

from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.listings import CREDENTIALS
from gateway.admin.openapi.formats import NAME
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import CredentialListQuery
from gateway.admin.requests.models import NoBody, NoQuery
from gateway.admin.requests.primitives import CredentialCreate, CredentialReplace
from gateway.admin.responses.selections import CredentialPage, CredentialShown
from gateway.admin.upserts import Upsert, check_new_name, put
from gateway.catalog import credentials
from gateway.catalog.credentials import CredentialDraft
from gateway.catalog.etags import tag_of


async def list_credentials(admin: AdminDependencies, call: AdminRequest[NoBody, CredentialListQuery]) -> AdminResponse:
    """List the tenant's credentials, by default by name."""
    read = partial(credentials.page_credentials, call.tenant, admin.catalog)
    shown, cursor = await read_list(admin.cursors, call.tenant, CREDENTIALS, call.query, read=read)
    return AdminResponse(content=CredentialPage(items=[CredentialShown.of(one) for one in shown], next_cursor=cursor))


async def create_credential(admin: AdminDependencies, call: AdminRequest[CredentialCreate, NoQuery]) -> AdminResponse:
    """Create a credential."""
    return await _create(admin, call, call.body.name)


async def get_credential(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a credential."""
    found = await credentials.get_credential(call.tenant, admin.catalog, call.path["name"])
    return AdminResponse(content=CredentialShown.of(found), tag=tag_of(found))


async def replace_credential(admin: AdminDependencies, call: AdminRequest[CredentialReplace, NoQuery]) -> AdminResponse:
    """Replace the secret, location and origins of a credential, or create it."""
    name = call.path["name"]

    async def replace() -> AdminResponse:
        change = partial(credentials.replace_credential, call.tenant, admin.catalog, _draft(name, call.body))
        saved = await change(by=call.by, expected=call.expected)
        return AdminResponse(content=CredentialShown.of(saved), tag=tag_of(saved))

    async def create() -> AdminResponse:
        check_new_name("credential", name, NAME)
        return await _create(admin, call, name)

    read = partial(credentials.get_credential, call.tenant, admin.catalog, name)
    return await put(call, Upsert(read=read, replace=replace, create=create))


async def delete_credential(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Delete a credential."""
    remove = partial(credentials.remove_credential, call.tenant, admin.catalog)
    await remove(call.path["name"], by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def _create(
    admin: AdminDependencies,
    call: AdminRequest[CredentialCreate, NoQuery] | AdminRequest[CredentialReplace, NoQuery],
    name: str,
) -> AdminResponse:
    draft = _draft(name, call.body)
    made = await credentials.create_credential(call.tenant, admin.catalog, draft, by=call.by)
    location = f"/tenants/{quote(call.path['t'])}/credentials/{quote(made.name)}"
    return AdminResponse(status=201, content=CredentialShown.of(made), tag=tag_of(made), location=location)


def _draft(name: str, body: CredentialReplace) -> CredentialDraft:
    return CredentialDraft(
        name=name,
        place=body.place,
        origins=body.origins,
        value=body.value,
        username=body.username,
        password=body.password,
        field=body.field,
    )


_LIST = "/tenants/{t}/credentials"
_ONE = "/tenants/{t}/credentials/{name}"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_LIST,
        summary="List the tenant's credentials, without their secrets.",
        handle=list_credentials,
        body=NoBody,
        query=CredentialListQuery,
        answers={200: CredentialPage},
    ),
    Endpoint(
        method="POST",
        path=_LIST,
        summary="Store a credential for handlers to name; its secret is never shown.",
        handle=create_credential,
        body=CredentialCreate,
        query=NoQuery,
        answers={201: CredentialShown},
        problems=frozenset({409, 429}),
        has_tag=True,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        summary="Show a credential, without its secret.",
        handle=get_credential,
        body=NoBody,
        query=NoQuery,
        answers={200: CredentialShown},
        has_tag=True,
    ),
    Endpoint(
        method="PUT",
        path=_ONE,
        summary="Give a credential another secret, place and origins, all together, or create it.",
        handle=replace_credential,
        body=CredentialReplace,
        query=NoQuery,
        answers={200: CredentialShown, 201: CredentialShown},
        problems=frozenset({409, 429}),
        has_tag=True,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        summary="Forget a credential that no handler names.",
        handle=delete_credential,
        body=NoBody,
        query=NoQuery,
        answers={204: None},
        problems=frozenset({409}),
        has_tag=True,
    ),
)
