"""Command groups of kinds without further commands. Written by `python -m tests.deploy.pages`; do not edit."""

GROUPS = {
    "profile": (
        "gateway.cli.kinds.index:profile",
        "Manage a tenant's profiles, each a selection of the tenant's primitives, with its own URL.",
    ),
    "guardrail": (
        "gateway.cli.kinds.index:guardrail",
        "Manage a tenant's guardrails, each a check of calls or results, with the action on a finding.",
    ),
    "watch": (
        "gateway.cli.kinds.index:watch",
        "Manage a tenant's watches, each a URL that the gateway polls.",
    ),
}
