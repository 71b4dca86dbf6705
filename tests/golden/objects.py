"""Objects of every kind, as a client of commit 79130e09 sends them to the admin API."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.documents import pets, secured
from tests.support.primitives import static_tool, template, text_prompt, text_resource

ACME = "/tenants/acme"
HOST = "https://api.example"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request that creates or changes an object."""

    method: str
    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstreams:
    """URLs at which creations fetch: an API, a provider of sign-ins, and an issuer of opaque tokens."""

    api: str
    provider: str
    opaque: str


SINGLETONS: Mapping[str, Mapping[str, Any]] = {
    "policy": {
        "moderate": "confirm",
        "limits": {"calls_per_second": 40, "burst": 80},
        "rules": [
            {
                "tool": "refund_*",
                "when": [{"pointer": "/amount", "operator": "greater", "value": 1000}],
                "decision": "approve",
                "reason": "a large refund",
            }
        ],
        "recorded_arguments": [{"tool": "refund_*", "keep": ["/amount"], "hash": ["/customer"], "drop": []}],
    },
    "access": {
        "default": "allow",
        "rules": [{"effect": "deny", "who": ["people"], "what": {"sources": ["pets"]}, "reason": "for keys only"}],
        "roles": [{"role": "approve", "who": ["group:corp:leads"], "reason": "leads answer"}],
    },
    "egress": {"allow": ["billing.internal:8443", "10.0.0.5:8080"]},
    "ceilings": {"burst": 900, "calls_per_second": 450, "admin_bounds": {"keys": 20, "issuers": True}},
    "audit/retention": {"days": 36_500},
}
"""Members of the objects that a tenant has once, by path."""

COLLECTIONS = (
    "keys",
    "issuers",
    "clients",
    "sources",
    "sources/pets/overrides",
    "live-sources",
    "tools",
    "resources",
    "resource-templates",
    "prompts",
    "profiles",
    "credentials",
    "webhooks",
    "webhook-endpoints",
    "watches",
    "guardrails",
    "audit-sinks",
)
"""The lists of a tenant by path; with the tenants themselves they are the 18 collections."""


def requests(at: Upstreams) -> Iterator[Sent]:
    """Yield the requests that create at least two objects of every collection, and set every singleton."""
    for slug in ("acme", "globex"):
        yield Sent(method="POST", path="/tenants", body={"slug": slug, "name": slug.title()})
    for plural, bodies in _bodies(at).items():
        for body in bodies:
            yield Sent(method="POST", path=f"{ACME}/{plural}", body=body)
    yield Sent(method="PATCH", path=f"{ACME}/tools/get_pet", body={"title": "Find a pet", "safety": "moderate"})
    yield Sent(method="PATCH", path=f"{ACME}/tools/list_pets", body={"description": "Lists.", "hidden": True})
    for path in ("ceilings", "policy", "access", "egress", "audit/retention"):
        yield Sent(method="PUT", path=f"{ACME}/{path}", body=SINGLETONS[path])
    yield Sent(method="PATCH", path=f"{ACME}/profiles/readers", body={"description": "Changed once."})
    yield Sent(method="PATCH", path=f"{ACME}/audit-sinks/siem", body={"enabled": False})
    yield Sent(method="POST", path=f"{ACME}/webhooks/cms/rotate", body={})
    yield Sent(method="POST", path=f"{ACME}/webhook-endpoints/chat/rotate", body={})


def _bodies(at: Upstreams) -> Mapping[str, list[dict[str, Any]]]:
    """The bodies of creations by path, in an order in which each finds what it names."""
    text = {"kind": "template", "text": "row {{ id }}", "mimeType": "text/plain"}
    hook = {"url": f"{HOST}/judge", "credential": "judge", "timeout_ms": 900, "fail": "open"}
    checked = {"phases": ["call"], "action": "block"}
    return {
        "credentials": [
            {"name": "vendor", "place": "bearer", "value": "s3cret-of-vendor", "origins": [HOST]},
            {"name": "header", "place": "header", "field": "X-Key", "value": "s3cret-of-header", "origins": [HOST]},
            {
                "name": "judge",
                "place": "bearer",
                "value": "whsec_YSBrZXkgb2YgaG9va3MgaW4gdGhlIGdvbGRlbiByb3dz",
                "origins": [HOST],
            },
            _user_credential(at.api),
        ],
        "sources": [
            {"name": "pets", "document": pets(HOST)},
            {
                "name": "secured",
                "document": secured(HOST),
                "prefix": "s_",
                "credentials": {"token": "s3cret-of-source"},
            },
        ],
        "tools": [static_tool("say"), static_tool("tell")],
        "resources": [text_resource("docs://a"), text_resource("docs://b")],
        "resource-templates": [template("docs://rows/{id}", text), template("docs://lines/{id}", text)],
        "prompts": [text_prompt("greet"), text_prompt("part")],
        "profiles": [
            {"name": "readers", "description": "What only reads.", "include": [{"safety": ["safe"]}]},
            {"name": "small", "include": [{"names": ["say"], "families": ["tool"]}], "exclude": [{"names": ["x*"]}]},
        ],
        "keys": [
            {"name": "agent", "scopes": ["mcp"], "profile": "readers", "subject": "night"},
            {"name": "person", "scopes": ["approve"], "expires_at": "2099-12-31T23:59:59Z"},
        ],
        "issuers": [
            {
                "name": "corp",
                "url": at.provider,
                "rules": [{"group": "engineers"}, {"profiles": ["small"], "scope": "tools"}],
                "sign_in": {"client_id": "gateway", "client_secret": "s3cret-of-sign-in"},
            },
            {
                "name": "lab",
                "url": at.opaque,
                "rules": [{}],
                "introspection": {"client_id": "gateway", "client_secret": "s3cret-of-introspection", "cache_s": 10},
            },
        ],
        "clients": [
            {"name": "Reports", "redirect_uris": ["https://reports.example/callback"], "confidential": True},
            {"name": "Figures", "redirect_uris": ["http://127.0.0.1/callback"], "confidential": False},
        ],
        "live-sources": [
            {"name": "laptop", "kind": "agent", "include": ["get_*"], "safety": {"get_it": "safe"}},
            {"name": "wiki", "kind": "mcp", "settings": {"url": f"{HOST}/mcp"}, "prefix": "w_", "enabled": False},
        ],
        "webhooks": [{"name": "cms"}, {"name": "shop"}],
        "webhook-endpoints": [
            {"name": "chat", "url": f"{HOST}/hook", "kinds": ["approval.requested"], "enabled": False},
            {"name": "mail", "url": f"{HOST}/mail", "kinds": ["source.proposed"], "enabled": False},
        ],
        "watches": [
            {"uri": "docs://a", "url": f"{HOST}/a", "credential": "vendor", "interval_s": 86400},
            {"uri": "docs://b", "url": f"{HOST}/b", "interval_s": 86400},
        ],
        "guardrails": [
            {"name": "secrets", "check": "secrets", "position": 2, **checked},
            {"name": "judge", "check": "http", "hook": hook, "scope": {"names": ["wiki_*"]}, **checked},
        ],
        "audit-sinks": [
            {"name": "siem", "kind": "https", "target": f"{HOST}/in", "credential": "vendor", "enabled": False},
            {"name": "other", "kind": "https", "target": f"{HOST}/other", "enabled": False},
        ],
    }


def _user_credential(url: str) -> dict[str, Any]:
    return {
        "name": "tracker",
        "kind": "user",
        "place": "bearer",
        "origins": [url],
        "scopes": ["read"],
        "client_id": "gateway-client",
        "value": "s3cret-of-the-client",
        "parameters": {"access_type": "offline"},
        "authorization_url": f"{url}/authorize",
        "token_url": f"{url}/token",
    }
