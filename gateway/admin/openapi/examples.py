"""One example body for each request model. A test validates each example against its model."""

from collections.abc import Mapping
from typing import Any

from gateway.kinds.identity import ISSUER
from gateway.kinds.index import KINDS, OPERATORS_KINDS
from gateway.kinds.kind import Kind
from gateway.kinds.singletons import ACCESS, SINGLETONS

Json = Mapping[str, object]

_DOCUMENT: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example"}],
    "paths": {
        "/pets": {
            "get": {
                "operationId": "list_pets",
                "summary": "List the pets.",
                "responses": {"200": {"description": "The pets."}},
            }
        }
    },
}
_LIVE: Json = {
    "kind": "mcp",
    "settings": {"url": "https://wiki.example/mcp", "timeout_s": 30},
    "prefix": "wiki_",
    "safety": {"search": "safe"},
}
_REFUNDS: Json = {
    "tool": "refund_*",
    "when": [{"pointer": "/amount", "operator": "greater", "value": 1000}],
    "decision": "approve",
    "reason": "a large refund",
}
_OVERRIDE: Json = {
    "title": "Find a pet",
    "description": "Finds a pet by its id. Use it when the id is known.",
    "safety": "moderate",
    "result": {"pointer": "/items", "keep": ["/*/id", "/*/name"]},
}

_BODIES: Mapping[str, Json] = {
    "AccessCheck": {"as": {"subject": "corp:ada", "groups": ["corp:finance"]}, "family": "tool"},
    "AccessReportOf": ACCESS.example,
    "ApprovalDecide": {"comment": "Checked with the owner of the account."},
    "DocumentSent": _DOCUMENT,
    "ManifestSetSent": {
        "set": "platform",
        "objects": [
            {"kind": "profile", "name": "readers", "members": {"include": [{"safety": ["safe"]}]}},
            {"kind": "audit-retention", "members": {"days": 365}},
        ],
        "commit": "4f2a9c1",
        "dry_run": True,
    },
    "KeyCreate": {"name": "agent", "scopes": ["mcp"], "expires_at": "2099-12-31T23:59:59Z"},
    "KeyRotate": {"overlap_s": 86400},
    "KeyCheck": {"text": "found in a log: mcpg_live_…", "revoke": False},
    "SecretRotate": {"dry_run": True},
    "KeyUpdate": {"name": "agent of the night shift"},
    "LiveSourceAccept": {"names": None},
    "LiveSourceCreate": {"name": "wiki", **_LIVE},
    "LiveSourceReplace": _LIVE,
    "LiveSourceUpdate": {"exclude": ["admin_*"], "accepts_changes": False},
    "PromptTry": {"arguments": {"name": "Ada"}},
    "ResourceChanged": {"uri": "note://1"},
    "RulesCheck": {"rules": [_REFUNDS]},
    "SourceCreate": {"name": "pets", "document": _DOCUMENT},
    "ProposalSent": {"document": _DOCUMENT},
    "SourceRefresh": {"allow_removals": False},
    "SourceReplace": {"document": _DOCUMENT},
    "SourceUpdate": {"prefix": "pets_"},
    "VersionActivate": {"dry_run": True},
    "ToolExplain": {"arguments": {"limit": 10}, "as": {"profile": "readers"}},
    "ToolTry": {"arguments": {"limit": 10}},
    "ToolUpdate": _OVERRIDE,
}
"""The bodies by model name."""


def _derived(kind: Kind[Any]) -> Mapping[str, Json]:
    """The bodies of a declared kind."""
    return {
        f"{kind.stem}Create": kind.example,
        f"{kind.stem}Replace": kind.whole_example,
        f"{kind.stem}Update": kind.changed_example,
    }


_DERIVED: Mapping[str, Json] = {
    **{model: body for kind in (*KINDS, *OPERATORS_KINDS, ISSUER) for model, body in _derived(kind).items()},
    **{f"{one.stem}Replace": one.example for one in SINGLETONS},
    **{f"{one.stem}Update": one.changed_example for one in SINGLETONS},
}


def example_of(model: str) -> Json:
    """Return an example body of this model."""
    return {**_DERIVED, **_BODIES}[model]
