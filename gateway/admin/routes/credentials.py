"""Endpoints of named credentials; no response contains a secret."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gateway.admin.crud import Noun, endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.limits import WorkKind
from gateway.admin.list_search import CREDENTIALS
from gateway.admin.requests.lists import CredentialListQuery
from gateway.admin.requests.primitives import CREDENTIAL_UPDATE, CredentialCreate, CredentialReplace, read_reference
from gateway.admin.responses.selections import CredentialPage, CredentialShown, CredentialTested
from gateway.admin.upserts import Upsert, check_new_name, put
from gateway.catalog import credentials
from gateway.catalog.identity.delegations import CredentialDraft
from gateway.catalog.tenants import get_tenant
from gateway.domain.credentials import CredentialKind, StoredCredential
from gateway.domain.identifiers import TenantId
from gateway.domain.members.formats import NAME
from gateway.web.models import BodyModel, NoBody, NoQuery


async def _show(
    admin: AdminDependencies, tenant: TenantId, found: Sequence[StoredCredential]
) -> Sequence[CredentialShown]:
    if not any(one.kind is CredentialKind.USER for one in found):
        return [CredentialShown.of(one) for one in found]
    slug = (await get_tenant(tenant, admin.catalog)).slug
    return [CredentialShown.at(one, slug, admin.catalog.options.public_url) for one in found]


_NOUN: Noun[StoredCredential] = Noun(
    singular="credential",
    path="/tenants/{t}/credentials",
    key="name",
    shown=CredentialShown,
    show=_show,
)


async def create_credential(admin: AdminDependencies, call: AdminRequest[CredentialCreate, NoQuery]) -> AdminResponse:
    """Store a credential, to which handlers refer by name; its secret is never shown."""
    return await _create(admin, call, call.body.name)


async def replace_credential(admin: AdminDependencies, call: AdminRequest[CredentialReplace, NoQuery]) -> AdminResponse:
    """Replace the secret, location and origins of a credential, or create it."""
    name = call.path["name"]

    async def replace_whole() -> AdminResponse:
        change = partial(credentials.replace_credential, call.tenant, admin.catalog, _draft(name, call.body))
        saved = await change(by=call.by, expected=call.expected)
        return await _NOUN.respond(admin, call, saved)

    async def create() -> AdminResponse:
        check_new_name("credential", name, NAME)
        return await _create(admin, call, name)

    read = partial(credentials.get_credential, call.tenant, admin.catalog, name)
    return await put(call, Upsert(read=read, replace=replace_whole, create=create))


async def update_credential(admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]) -> AdminResponse:
    """Change the sent members of a credential. Its secret is kept while no member that names a receiver changes."""
    sent = call.body.sent()

    def revise(draft: CredentialDraft) -> CredentialDraft:
        members: dict[str, Any] = {**sent}
        if "scopes" in sent:
            members["scopes"] = tuple(sent["scopes"])
        if "parameters" in sent:
            members["parameters"] = tuple(sent["parameters"].items())
        if "reference" in sent:
            members["reference"] = read_reference(sent["reference"])
        return replace(draft, **members)

    update = partial(credentials.update_credential, call.tenant, admin.catalog, call.path["name"], revise)
    return await _NOUN.respond(admin, call, await update(by=call.by, expected=call.expected))


async def _create(admin: AdminDependencies, call: AdminRequest[CredentialReplace, NoQuery], name: str) -> AdminResponse:
    draft = _draft(name, call.body)
    made = await credentials.create_credential(call.tenant, admin.catalog, draft, by=call.by)
    return _NOUN.to_created(call, made, await _NOUN.respond(admin, call, made))


def _draft(name: str, body: CredentialReplace) -> CredentialDraft:
    return CredentialDraft(
        name=name,
        kind=body.kind,
        place=body.place,
        audience=body.audience,
        issuer=body.issuer,
        client_id=body.client_id,
        scopes=tuple(body.scopes),
        server=body.server,
        authorization_url=body.authorization_url,
        token_url=body.token_url,
        revocation_url=body.revocation_url,
        parameters=tuple(body.parameters.items()),
        origins=body.origins,
        value=body.value,
        username=body.username,
        password=body.password,
        field=body.field,
        reference=read_reference(body.reference),
    )


async def test_credential(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Read the secret of a credential in the same way as a call; the response does not contain it."""
    reference = await credentials.test_credential(call.tenant, admin.catalog, call.path["name"])
    return AdminResponse(content=CredentialTested(reference=None if reference is None else str(reference)))


ENDPOINTS = (
    _NOUN.list_route(
        "List the tenant's credentials, without their secrets.",
        credentials.page_credentials,
        CREDENTIALS,
        CredentialListQuery,
        CredentialPage,
    ),
    _NOUN.create_route(create_credential, CredentialCreate, problems={409, 429}),
    _NOUN.show_route("Show a credential, without its secret.", credentials.get_credential),
    _NOUN.upsert_route(replace_credential, CredentialReplace, problems={409, 429}),
    _NOUN.update_route(update_credential, CREDENTIAL_UPDATE),
    endpoint(
        "POST",
        f"{_NOUN.item}/test",
        test_credential,
        NoBody,
        NoQuery,
        {200: CredentialTested},
        problems=frozenset({502}),
        work=WorkKind.OUTBOUND,
    ),
    _NOUN.delete_route("Delete a credential that is not in use.", credentials.remove_credential, problems={409}),
)
