"""Endpoints of profiles."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.listings import PROFILES
from gateway.admin.openapi.formats import LABEL
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import ProfileListQuery
from gateway.admin.requests.models import NoBody, NoQuery
from gateway.admin.requests.primitives import ProfileCreate, ProfileReplace, ProfileUpdate, RuleSent
from gateway.admin.responses.selections import ProfilePage, ProfileShown
from gateway.admin.upserts import Upsert, check_new_name, put
from gateway.catalog import profiles
from gateway.catalog.etags import tag_of
from gateway.catalog.snapshots.token_costs import price_profiles
from gateway.domain.identifiers import TenantId, new_profile_id
from gateway.domain.tenancy.profiles import Profile, Rule


async def list_profiles(admin: AdminDependencies, call: AdminRequest[NoBody, ProfileListQuery]) -> AdminResponse:
    """List the tenant's profiles, by default by name."""
    read = partial(profiles.page_profiles, call.tenant, admin.catalog)
    shown, cursor = await read_list(admin.cursors, call.tenant, PROFILES, call.query, read=read)
    prices = await price_profiles(call.tenant, admin.catalog, shown)
    items = [ProfileShown.of(profile, price) for profile, price in zip(shown, prices, strict=True)]
    return AdminResponse(content=ProfilePage(items=items, next_cursor=cursor))


async def create_profile(admin: AdminDependencies, call: AdminRequest[ProfileCreate, NoQuery]) -> AdminResponse:
    """Create a profile."""
    return await _create(admin, call, call.body.name)


async def get_profile(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a profile."""
    return await _answer(admin, call.tenant, await profiles.get_profile(call.tenant, admin.catalog, call.path["name"]))


async def replace_profile(admin: AdminDependencies, call: AdminRequest[ProfileReplace, NoQuery]) -> AdminResponse:
    """Replace the rules of a profile, or create it; values that are not sent get their default."""
    name = call.path["name"]

    async def replace_rules() -> AdminResponse:
        update = partial(profiles.update_profile, call.tenant, admin.catalog, name)
        saved = await update(partial(_revise, call.body), by=call.by, expected=call.expected)
        return await _answer(admin, call.tenant, saved)

    async def create() -> AdminResponse:
        check_new_name("profile", name, LABEL)
        return await _create(admin, call, name)

    read = partial(profiles.get_profile, call.tenant, admin.catalog, name)
    return await put(call, Upsert(read=read, replace=replace_rules, create=create))


async def update_profile(admin: AdminDependencies, call: AdminRequest[ProfileUpdate, NoQuery]) -> AdminResponse:
    """Change a profile; values that are not sent are kept."""
    body = call.body

    def revise(profile: Profile) -> Profile:
        return replace(
            profile,
            description=profile.description if body.description is None else body.description,
            include=profile.include if body.include is None else _rules(body.include),
            exclude=profile.exclude if body.exclude is None else _rules(body.exclude),
        )

    update = partial(profiles.update_profile, call.tenant, admin.catalog, call.path["name"])
    return await _answer(admin, call.tenant, await update(revise, by=call.by, expected=call.expected))


async def delete_profile(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Delete a profile."""
    await profiles.remove_profile(call.tenant, admin.catalog, call.path["name"], by=call.by, expected=call.expected)
    return AdminResponse(status=204)


async def _create(
    admin: AdminDependencies,
    call: AdminRequest[ProfileCreate, NoQuery] | AdminRequest[ProfileReplace, NoQuery],
    name: str,
) -> AdminResponse:
    wanted = _revise(call.body, Profile(id=new_profile_id(), name=name))
    made = await profiles.create_profile(call.tenant, admin.catalog, wanted, by=call.by)
    location = f"/tenants/{quote(call.path['t'])}/profiles/{made.name}"
    return replace(await _answer(admin, call.tenant, made), status=201, location=location)


async def _answer(admin: AdminDependencies, tenant: TenantId, profile: Profile) -> AdminResponse:
    [price] = await price_profiles(tenant, admin.catalog, [profile])
    return AdminResponse(content=ProfileShown.of(profile, price), tag=tag_of(profile))


def _revise(body: ProfileReplace, profile: Profile) -> Profile:
    return replace(profile, description=body.description, include=_rules(body.include), exclude=_rules(body.exclude))


def _rules(sent: Sequence[RuleSent]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            names=tuple(rule.names),
            sources=tuple(rule.sources),
            tags=tuple(rule.tags),
            methods=tuple(method.upper() for method in rule.methods),
            safety=tuple(rule.safety),
            families=tuple(family.value for family in rule.families),
        )
        for rule in sent
    )


_LIST = "/tenants/{t}/profiles"
_ONE = "/tenants/{t}/profiles/{name}"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_LIST,
        summary="List the tenant's profiles, with what each shows and costs now; `default` is everything.",
        handle=list_profiles,
        body=NoBody,
        query=ProfileListQuery,
        answers={200: ProfilePage},
    ),
    Endpoint(
        method="POST",
        path=_LIST,
        summary="Create a profile: a selection of the tenant's primitives, at a URL of its own.",
        handle=create_profile,
        body=ProfileCreate,
        query=NoQuery,
        answers={201: ProfileShown},
        problems=frozenset({409, 429}),
        has_tag=True,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        summary="Show a profile, with what it shows and costs now.",
        handle=get_profile,
        body=NoBody,
        query=NoQuery,
        answers={200: ProfileShown},
        has_tag=True,
    ),
    Endpoint(
        method="PUT",
        path=_ONE,
        summary="Give a profile other rules, or create it; what is not sent has its default.",
        handle=replace_profile,
        body=ProfileReplace,
        query=NoQuery,
        answers={200: ProfileShown, 201: ProfileShown},
        problems=frozenset({409, 429}),
        has_tag=True,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        summary="Change a profile; what is not sent stays.",
        handle=update_profile,
        body=ProfileUpdate,
        query=NoQuery,
        answers={200: ProfileShown},
        problems=frozenset({409}),
        has_tag=True,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        summary="Remove a profile that no key is bound to.",
        handle=delete_profile,
        body=NoBody,
        query=NoQuery,
        answers={204: None},
        problems=frozenset({409}),
        has_tag=True,
    ),
)
