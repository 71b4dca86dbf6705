"""The kinds that select and guard what a tenant's clients see."""

from gateway.domain.identifiers import ProfileId
from gateway.domain.members.formats import LABEL
from gateway.domain.tenancy.guardrails import Guardrail
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE, Profile, ProfileCosts
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.kinds.kind import Kind, Limit, ListFilter

PROFILE_LIMIT = Limit(most=200, reason="each one is compiled with every snapshot of the catalog")

PROFILE = Kind(
    of=Profile,
    stem="Profile",
    name="profile",
    plural="profiles",
    id_prefix="prf",
    about="a selection of the tenant's primitives, with its own URL",
    limit=PROFILE_LIMIT,
    form=LABEL,
    name_about="A DNS label; it is a segment of the profile's URL.",
    reserved={DEFAULT_PROFILE: "builtin", "hooks": "reserved for the path of webhooks"},
    example={
        "name": "readers",
        "description": "What only reads.",
        "include": [{"safety": ["safe"]}],
        "exclude": [{"names": ["admin_*"]}],
    },
    texts=lambda one: (one.name, one.description),
    status=ProfileCosts,
    built_in=Profile(id=ProfileId(DEFAULT_PROFILE), name=DEFAULT_PROFILE, description="All primitives of the tenant."),
)

GUARDRAIL = Kind(
    of=Guardrail,
    stem="Guardrail",
    name="guardrail",
    plural="guardrails",
    id_prefix="grd",
    about="a check of calls or results, with the action on a finding",
    limit=Limit(most=20, reason="each one can delay every call"),
    in_order=("position", "name"),
    example={
        "name": "injection",
        "check": "prompt-injection",
        "phases": ["result"],
        "action": "mark",
        "scope": {"names": ["wiki_*"]},
        "origins": ["live", "source"],
    },
    texts=lambda one: (one.name,),
    filters={
        "check": ListFilter(type=GuardrailCheck, about="Only guardrails with this check.", value=lambda one: one.check),
        "enabled": ListFilter(
            type=bool,
            about="Only guardrails that are enabled (true) or disabled (false).",
            value=lambda one: one.enabled,
        ),
    },
)
