"""Endpoints of profiles."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.list_search import PROFILES
from gateway.admin.openapi.formats import LABEL
from gateway.admin.requests.lists import ProfileListQuery
from gateway.admin.requests.models import NoQuery
from gateway.admin.requests.primitives import ProfileCreate, ProfileReplace, ProfileUpdate, RuleSent
from gateway.admin.responses.selections import ProfilePage, ProfileShown
from gateway.admin.upserts import Upsert, check_new_name, put
from gateway.catalog import profiles
from gateway.catalog.snapshots.token_costs import price_profiles
from gateway.domain.identifiers import TenantId, new_profile_id
from gateway.domain.tenancy.profiles import Profile, Rule


async def create_profile(admin: AdminDependencies, call: AdminRequest[ProfileCreate, NoQuery]) -> AdminResponse:
    """Create a profile: a selection of the tenant's primitives, with its own URL."""
    return await _create(admin, call, call.body.name)


async def replace_profile(admin: AdminDependencies, call: AdminRequest[ProfileReplace, NoQuery]) -> AdminResponse:
    """Replace the rules of a profile, or create it; absent fields have their default."""
    name = call.path["name"]

    async def replace_rules() -> AdminResponse:
        update = partial(profiles.update_profile, call.tenant, admin.catalog, name)
        saved = await update(partial(_revise, call.body), by=call.by, expected=call.expected)
        return await _NOUN.respond(admin, call, saved)

    async def create() -> AdminResponse:
        check_new_name("profile", name, LABEL)
        return await _create(admin, call, name)

    read = partial(profiles.get_profile, call.tenant, admin.catalog, name)
    return await put(call, Upsert(read=read, replace=replace_rules, create=create))


async def update_profile(admin: AdminDependencies, call: AdminRequest[ProfileUpdate, NoQuery]) -> AdminResponse:
    """Change a profile; absent fields keep their value."""
    body = call.body

    def revise(profile: Profile) -> Profile:
        return replace(
            profile,
            description=profile.description if body.description is None else body.description,
            include=profile.include if body.include is None else _rules(body.include),
            exclude=profile.exclude if body.exclude is None else _rules(body.exclude),
            structured_once=profile.structured_once if body.structured_once is None else body.structured_once,
            selects_fields=profile.selects_fields if body.selects_fields is None else body.selects_fields,
            summary_threshold=(profile.summary_threshold if body.summary_threshold is None else body.summary_threshold),
        )

    update = partial(profiles.update_profile, call.tenant, admin.catalog, call.path["name"])
    return await _NOUN.respond(admin, call, await update(revise, by=call.by, expected=call.expected))


async def _create(admin: AdminDependencies, call: AdminRequest[ProfileReplace, NoQuery], name: str) -> AdminResponse:
    wanted = _revise(call.body, Profile(id=new_profile_id(), name=name))
    made = await profiles.create_profile(call.tenant, admin.catalog, wanted, by=call.by)
    return _NOUN.to_created(call, made, await _NOUN.respond(admin, call, made))


async def _show(admin: AdminDependencies, tenant: TenantId, found: Sequence[Profile]) -> Sequence[ProfileShown]:
    prices = await price_profiles(tenant, admin.catalog, found)
    return [ProfileShown.of(profile, price) for profile, price in zip(found, prices, strict=True)]


def _revise(body: ProfileReplace, profile: Profile) -> Profile:
    return replace(
        profile,
        description=body.description,
        include=_rules(body.include),
        exclude=_rules(body.exclude),
        structured_once=body.structured_once,
        selects_fields=body.selects_fields,
        summary_threshold=body.summary_threshold,
    )


def _rules(sent: Sequence[RuleSent]) -> tuple[Rule, ...]:
    return tuple(rule_of(rule) for rule in sent)


def rule_of(sent: RuleSent) -> Rule:
    """Return the rule that a request describes."""
    return Rule(
        names=tuple(sent.names),
        sources=tuple(sent.sources),
        tags=tuple(sent.tags),
        methods=tuple(method.upper() for method in sent.methods),
        safety=tuple(sent.safety),
        families=tuple(family.value for family in sent.families),
    )


_NOUN = Noun(singular="profile", path="/tenants/{t}/profiles", key="name", shown=ProfileShown, show=_show)

ENDPOINTS = (
    _NOUN.list_route(
        "List the tenant's profiles with their content and cost; `default` contains all primitives.",
        profiles.page_profiles,
        PROFILES,
        ProfileListQuery,
        ProfilePage,
    ),
    _NOUN.create_route(create_profile, ProfileCreate, problems={409, 429}),
    _NOUN.show_route("Show a profile with its content and cost.", profiles.get_profile),
    _NOUN.upsert_route(replace_profile, ProfileReplace, problems={409, 429}),
    _NOUN.update_route(update_profile, ProfileUpdate, problems={409}),
    _NOUN.delete_route("Delete a profile to which no key is bound.", profiles.remove_profile, problems={409}),
)
