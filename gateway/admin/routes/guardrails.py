"""Endpoints of guardrails."""

from dataclasses import replace
from functools import partial

from gateway.admin.crud import Noun, each
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.list_search import GUARDRAILS
from gateway.admin.requests.guardrails import GuardrailCreate, GuardrailReplace, GuardrailUpdate
from gateway.admin.requests.lists import GuardrailListQuery
from gateway.admin.responses.guardrails import GuardrailPage, GuardrailShown
from gateway.admin.upserts import Upsert, check_new_name, put
from gateway.catalog import guardrails
from gateway.domain.members.formats import NAME
from gateway.domain.tenancy.guardrails import GuardrailRule, HookSettings
from gateway.web.kinds.rules import rule_of
from gateway.web.models import NoQuery

_NOUN = Noun(
    singular="guardrail",
    path="/tenants/{t}/guardrails",
    key="name",
    shown=GuardrailShown,
    show=each(GuardrailShown.of),
)


async def create_guardrail(admin: AdminDependencies, call: AdminRequest[GuardrailCreate, NoQuery]) -> AdminResponse:
    """Create a guardrail: a check of calls or results, with the action on a finding."""
    return await _create(admin, call, call.body.name)


async def replace_guardrail(admin: AdminDependencies, call: AdminRequest[GuardrailReplace, NoQuery]) -> AdminResponse:
    """Replace the rule of a guardrail, or create it; absent fields have their default."""
    name = call.path["name"]

    async def replace_rule() -> AdminResponse:
        update = partial(guardrails.update_guardrail, call.tenant, admin.catalog, name)
        saved = await update(lambda _: _rule(call.body), by=call.by, expected=call.expected)
        return await _NOUN.respond(admin, call, saved)

    async def create() -> AdminResponse:
        check_new_name("guardrail", name, NAME)
        return await _create(admin, call, name)

    read = partial(guardrails.get_guardrail, call.tenant, admin.catalog, name)
    return await put(call, Upsert(read=read, replace=replace_rule, create=create))


async def update_guardrail(admin: AdminDependencies, call: AdminRequest[GuardrailUpdate, NoQuery]) -> AdminResponse:
    """Change a guardrail: enable, disable, reorder it, or change its rule; absent fields keep their value."""
    sent = call.body.sent()
    if "phases" in sent:
        sent["phases"] = tuple(sent["phases"])
    update = partial(guardrails.update_guardrail, call.tenant, admin.catalog, call.path["name"])
    saved = await update(lambda rule: replace(rule, **sent), by=call.by, expected=call.expected)
    return await _NOUN.respond(admin, call, saved)


async def _create(admin: AdminDependencies, call: AdminRequest[GuardrailReplace, NoQuery], name: str) -> AdminResponse:
    made = await guardrails.create_guardrail(call.tenant, admin.catalog, name, _rule(call.body), by=call.by)
    return _NOUN.to_created(call, made, await _NOUN.respond(admin, call, made))


def _rule(body: GuardrailReplace) -> GuardrailRule:
    hook = body.hook
    return GuardrailRule(
        check=body.check,
        phases=tuple(body.phases),
        action=body.action,
        position=body.position,
        scope=rule_of(body.scope),
        origins=tuple(body.origins),
        patterns=tuple(body.patterns),
        max_bytes=body.max_bytes,
        hook=None
        if hook is None
        else HookSettings(
            url=hook.url,
            credential=hook.credential,
            timeout_ms=hook.timeout_ms,
            is_fail_open=hook.fail == "open",
        ),
        enabled=body.enabled,
    )


ENDPOINTS = (
    _NOUN.list_route(
        "List the tenant's guardrails; they run in order of position, then of name.",
        guardrails.page_guardrails,
        GUARDRAILS,
        GuardrailListQuery,
        GuardrailPage,
    ),
    _NOUN.create_route(create_guardrail, GuardrailCreate, problems={409, 422, 429}),
    _NOUN.show_route("Show a guardrail.", guardrails.get_guardrail),
    _NOUN.upsert_route(replace_guardrail, GuardrailReplace, problems={409, 422, 429}),
    _NOUN.update_route(update_guardrail, GuardrailUpdate, problems={422}),
    _NOUN.delete_route("Remove a guardrail.", guardrails.remove_guardrail),
)
