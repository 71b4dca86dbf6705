"""The options of `list` beside the queries of the admin API."""

from typing import Any

import click
import pytest

from gateway.admin.routes.index import ENDPOINTS
from gateway.cli.main import gateway

SHARED = {"tenant", "url", "context_name", "key", "data_dir", "as_json", "limit"}
LISTS = {
    "tenant": "tenants",
    "key": "keys",
    "source": "sources",
    "tool": "tools",
    "resource": "resources",
    "resource-template": "resource_templates",
    "prompt": "prompts",
    "profile": "profiles",
    "credential": "credentials",
    "webhook": "webhooks",
    "webhook-endpoint": "webhook_endpoints",
    "guardrail": "guardrails",
    "watch": "watches",
    "issuer": "issuers",
    "person": "people",
    "client": "clients",
    "consent": "consents",
    "grant": "grants",
    "live-source": "live_sources",
}


@pytest.mark.parametrize(("noun", "listed"), LISTS.items())
def test_a_list_has_the_parameters_of_its_noun_as_options(noun: str, listed: str) -> None:
    """Ours: each parameter of a list is an option, and each value of an option is one of the parameter (CLI-1)."""
    group: Any = gateway.get_command(click.Context(gateway), noun)
    options = {option.name: option for option in group.commands["list"].params if option.name not in SHARED}
    [route] = [route for route in ENDPOINTS if route.name == f"list_{listed}"]
    looked_up = {"limit", "cursor"} if noun == "watch" else {"limit", "cursor", "uri"}
    assert options.keys() == route.query.model_fields.keys() - looked_up
    for name, option in options.items():
        choices: list[str] = [*getattr(option.type, "choices", ())]
        for value in choices or ["true" if option.is_flag else "x"]:
            route.query.model_validate({name: value})
