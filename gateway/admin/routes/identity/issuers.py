"""Endpoints of issuers of access tokens."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.limits import WorkKind
from gateway.admin.list_search import ISSUERS
from gateway.admin.requests.people import (
    AdmissionRuleGiven,
    IntrospectionGiven,
    IssuerCreate,
    IssuerListQuery,
    IssuerUpdate,
    SignInClientGiven,
)
from gateway.admin.requests.primitives import read_reference
from gateway.admin.responses.people import IssuerPage, IssuerShown
from gateway.catalog.identity import issuers
from gateway.catalog.identity.introspection_clients import IntrospectionDraft
from gateway.catalog.identity.issuers import IssuerDraft
from gateway.catalog.identity.sign_in_clients import SignInDraft
from gateway.catalog.tenants import get_tenant
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import AdmissionRule, IntrospectionClient, Issuer, SignInClient
from gateway.web.models import NoBody, NoQuery


async def _show(admin: AdminDependencies, tenant: TenantId, found: Sequence[Issuer]) -> Sequence[IssuerShown]:
    slug = (await get_tenant(tenant, admin.catalog)).slug
    return [IssuerShown.at(one, slug, admin.catalog.options.public_url) for one in found]


_NOUN: Noun[Issuer] = Noun(singular="issuer", path="/tenants/{t}/issuers", key="name", shown=IssuerShown, show=_show)


async def create_issuer(admin: AdminDependencies, call: AdminRequest[IssuerCreate, NoQuery]) -> AdminResponse:
    """Accept the access tokens of an authorization server; if enabled, its metadata and keys are fetched first."""
    body = call.body
    draft = IssuerDraft(
        name=body.name,
        url=body.url,
        rules=_rules(body.rules),
        jwks_url=body.jwks_url,
        audiences=tuple(body.audiences),
        algorithms=tuple(body.algorithms),
        subject_claim=body.subject_claim,
        groups_claim=body.groups_claim,
        max_lifetime_s=body.max_lifetime_s,
        enabled=body.enabled,
        sign_in=_client(body.sign_in),
        introspection=_introspection(body.introspection),
        requires_dpop=body.requires_dpop,
    )
    made = await issuers.create_issuer(call.tenant, admin.catalog, draft, by=call.by)
    return _NOUN.to_created(call, made, await _NOUN.respond(admin, call, made))


async def update_issuer(admin: AdminDependencies, call: AdminRequest[IssuerUpdate, NoQuery]) -> AdminResponse:
    """Change an issuer; sessions and streams of its people end."""

    def revise(draft: IssuerDraft) -> IssuerDraft:
        sent = dict(call.body.sent())
        if call.body.rules is not None:
            sent["rules"] = _rules(call.body.rules)
        if "sign_in" in sent:
            sent["sign_in"] = _client(call.body.sign_in)
        if "introspection" in sent:
            sent["introspection"] = _introspection(call.body.introspection)
        for name in sent.keys() & {"audiences", "algorithms"}:
            sent[name] = tuple(sent[name])
        return replace(draft, **sent)

    update = partial(issuers.update_issuer, call.tenant, admin.catalog, call.path["name"], revise)
    return await _NOUN.respond(admin, call, await update(by=call.by, expected=call.expected))


async def refresh_keys(admin: AdminDependencies, call: AdminRequest[NoBody, NoQuery]) -> AdminResponse:
    """Drop the cached signing keys of an issuer on all replicas, and fetch them again; sessions of its people end."""
    refresh = partial(issuers.refresh_keys, call.tenant, admin.catalog, call.path["name"])
    return await _NOUN.respond(admin, call, await refresh(by=call.by, expected=call.expected))


def _client(given: SignInClientGiven | None) -> SignInDraft | None:
    if given is None:
        return None
    client = SignInClient(
        client_id=given.client_id,
        client_secret_reference=read_reference(given.client_secret_reference),
        scopes=tuple(given.scopes),
        parameters=tuple(given.parameters.items()),
        registration=given.registration,
        client_hosts=None if given.client_hosts is None else tuple(given.client_hosts),
        grant_idle_s=given.grant_idle_s,
        grant_max_s=given.grant_max_s,
        max_unchecked_s=given.max_unchecked_s,
    )
    return SignInDraft(client=client, secret=given.client_secret)


def _introspection(given: IntrospectionGiven | None) -> IntrospectionDraft | None:
    if given is None:
        return None
    client = IntrospectionClient(
        client_id=given.client_id,
        client_secret_reference=read_reference(given.client_secret_reference),
        given_url=given.url,
        client_auth=given.client_auth,
        tokens=given.tokens,
        cache_s=given.cache_s,
    )
    return IntrospectionDraft(client=client, secret=given.client_secret)


def _rules(given: Sequence[AdmissionRuleGiven]) -> tuple[AdmissionRule, ...]:
    return tuple(
        AdmissionRule(
            group=rule.group,
            scope=rule.scope,
            subject=rule.subject,
            profiles=None if rule.profiles is None else tuple(rule.profiles),
        )
        for rule in given
    )


ENDPOINTS = (
    _NOUN.list_route(
        "List the issuers whose access tokens the tenant accepts.",
        issuers.page_issuers,
        ISSUERS,
        IssuerListQuery,
        IssuerPage,
    ),
    _NOUN.create_route(create_issuer, IssuerCreate, problems={409, 422, 429}, work=WorkKind.OUTBOUND),
    _NOUN.show_route("Show an issuer.", issuers.get_issuer),
    _NOUN.update_route(update_issuer, IssuerUpdate, problems={422}, work=WorkKind.OUTBOUND),
    _NOUN.action_route("refresh-keys", refresh_keys, problems=frozenset({502}), work=WorkKind.OUTBOUND),
    _NOUN.delete_route("Delete an issuer with its people; their sessions end.", issuers.remove_issuer),
)
