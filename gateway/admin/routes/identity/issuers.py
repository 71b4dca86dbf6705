"""Endpoints of issuers of access tokens. Models and list follow from the declaration; the two clients are special."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field

from gateway.admin.admission import WorkKind
from gateway.admin.crud import Noun
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, of_installation
from gateway.admin.kinds import check_same, rules_of
from gateway.admin.requests.issuers import CLIENTS, refuse_null_conditions
from gateway.catalog.identity import issuers
from gateway.catalog.identity.issuer_drafts import IssuerDraft, clients_of
from gateway.catalog.tenants import get_tenant
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import IntrospectionClient, Issuer, IssuerStatus, ManagedIssuer, SignInClient
from gateway.kinds.identity import ISSUER
from gateway.kinds.members import settable
from gateway.web.kinds.annotations import Fields, make_model, merged, page_model, shown_model
from gateway.web.kinds.models import models_of
from gateway.web.models import BodyModel, NoQuery

_OWN = models_of(ISSUER)
_SIGN_IN: Any = shown_model(SignInClient)
_INTROSPECTION: Any = shown_model(IntrospectionClient)
_CLIENTS: Fields = {
    "sign_in": (Annotated[_SIGN_IN | None, Field(description="The gateway's own client at the issuer.")], ...),
    "introspection": (
        Annotated[_INTROSPECTION | None, Field(description="The gateway's client at the introspection endpoint.")],
        ...,
    ),
}
_SHOWN = make_model("IssuerShown", _OWN.shown, f"{ISSUER.about[:1].upper()}{ISSUER.about[1:]}.", _CLIENTS)
_PAGE = page_model("IssuerPage", _SHOWN, "One page of a tenant's issuers.")
_MODELS = replace(
    _OWN,
    create=make_model("IssuerCreate", _OWN.create, "A new issuer.", CLIENTS),
    whole=make_model("IssuerReplace", _OWN.whole, "A complete issuer; absent fields have their default.", CLIENTS),
    change=make_model("IssuerUpdate", _OWN.change, "Changes of an issuer; absent fields keep their value.", CLIENTS),
    shown=_SHOWN,
)


async def _show(admin: AdminDependencies, tenant: TenantId, found: Sequence[Issuer]) -> Sequence[BaseModel]:
    if not found:
        return []
    slug = (await get_tenant(tenant, admin.catalog)).slug
    return [_MODELS.show(one, _status_of(one, slug, admin.catalog.options.public_url)) for one in found]


def _status_of(issuer: Issuer, slug: str, public_url: str | None) -> IssuerStatus:
    client, introspection = issuer.sign_in, issuer.introspection
    return IssuerStatus(
        redirect_uri=None if client is None else f"{public_url or ''}{issuer.callback_path(slug)}",
        authorization_url=None if client is None else client.authorization_url,
        token_url=None if client is None else client.token_url,
        introspection_url=None if introspection is None else introspection.url,
    )


_NOUN: Noun[Issuer] = Noun(singular="issuer", path="/tenants/{t}/issuers", key="name", shown=_SHOWN, show=_show)


async def create_issuer(admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]) -> AdminResponse:
    """Accept the access tokens of an authorization server; if enabled, its metadata and keys are fetched first."""
    draft = IssuerDraft(name=getattr(call.body, ISSUER.keyed), **_members(call.body, is_whole=True))
    made = await issuers.create_issuer(call.tenant, admin.catalog, draft, by=call.by)
    noun = _NOUN if "t" in call.path else replace(_NOUN, path="/issuers")
    return noun.to_created(call, made, await _NOUN.respond(admin, call, made))


async def replace_issuer(admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]) -> AdminResponse:
    """Replace an issuer; absent fields have their default. Sessions and streams of its people end, if it changes."""
    name = call.path["name"]
    current = await issuers.get_issuer(call.tenant, admin.catalog, name)
    check_same(ISSUER, call.body, name, current)
    _OWN.compose(call.body, name, current)  # refuses another URL
    members = _members(call.body, is_whole=True)
    change = partial(issuers.set_issuer, call.tenant, admin.catalog, name, lambda draft: replace(draft, **members))
    expected = frozenset[str]() if call.creates_only else call.expected
    return await _NOUN.respond(admin, call, await change(by=call.by, expected=expected))


async def update_issuer(admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]) -> AdminResponse:
    """Change an issuer; sessions and streams of its people end."""
    members = _members(call.body, is_whole=False)
    change = partial(issuers.update_issuer, call.tenant, admin.catalog, call.path["name"])
    changed = await change(lambda draft: replace(draft, **members), by=call.by, expected=call.expected)
    return await _NOUN.respond(admin, call, changed)


def _members(body: BodyModel, *, is_whole: bool) -> dict[str, Any]:
    """The members of a draft that a body gives; those of a whole one have defaults."""
    names = type(body).model_fields.keys() if is_whole else body.sent().keys()
    refuse_null_conditions(getattr(body, "rules", None) or ())
    given = [one for one in settable(ManagedIssuer) if one.name in names]
    members = {one.name: merged(None, getattr(body, one.name), one.hint) for one in given}
    if "jwks_url" in members:
        members["jwks_url"] = members["jwks_url"] or None
    return members | clients_of(members)


_OF_TENANT = (
    _NOUN.list_route("List the tenant's issuers.", issuers.page_issuers, rules_of(ISSUER), _OWN.query, page=_PAGE),
    _NOUN.create_route(create_issuer, _MODELS.create, problems={409, 422, 429}, work=WorkKind.OUTBOUND),
    _NOUN.show_route("Show an issuer.", issuers.get_issuer),
    _NOUN.upsert_route(
        replace_issuer, _MODELS.whole, responses={200: _SHOWN}, problems={409, 422}, work=WorkKind.OUTBOUND
    ),
    _NOUN.update_route(update_issuer, _MODELS.change, problems={422}, work=WorkKind.OUTBOUND),
    _NOUN.act_route(
        "refresh-keys",
        "Drop the cached signing keys of an issuer on all replicas, and fetch them again; sessions of its people end.",
        issuers.refresh_keys,
        called="refresh_keys",
        problems={502},
        work=WorkKind.OUTBOUND,
    ),
    _NOUN.delete_route("Delete an issuer with its people; their sessions end.", issuers.remove_issuer),
)
ENDPOINTS = (
    *_OF_TENANT,
    *(
        of_installation(
            one,
            {"issuers": "installation_issuers", "issuer": "installation_issuer", "keys": "installation_issuer_keys"},
        )
        for one in _OF_TENANT
    ),
)
"""Those of tenants, and of the installation, whose people and workloads are operators."""
