"""Entity tags: the version of an object that clients receive, and the versions that a change requires."""

import hashlib

from gateway.domain.audit import TrailSink
from gateway.domain.calls.approvals import Approval
from gateway.domain.live_sources import LiveSource
from gateway.domain.primitives import Primitive
from gateway.domain.sources import Source
from gateway.domain.tenancy.accounts import UserAccount
from gateway.domain.tenancy.grants import Consent, Grant
from gateway.domain.tenancy.guardrails import Guardrail
from gateway.domain.tenancy.issuers import Issuer
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.own_primitives import OwnPrimitive
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tenancy.tenants import Tenant
from gateway.domain.tools import Tool
from gateway.domain.updates.watches import Watch
from gateway.domain.updates.webhook_endpoints import OutboundWebhook
from gateway.domain.updates.webhooks import Webhook
from gateway.errors import PreconditionFailed

Expected = frozenset[str] | None
"""Acceptable tags: one of them must be the current one. None requires nothing; `*` accepts any version."""

ANY = "*"

Versioned = (
    Tenant
    | Key
    | Issuer
    | Consent
    | UserAccount
    | Grant
    | Source
    | Primitive
    | OwnPrimitive
    | Profile
    | Guardrail
    | Webhook
    | Watch
    | LiveSource
    | Approval
    | OutboundWebhook
    | TrailSink
)
"""Objects that have an entity tag."""


def tag_of(thing: Versioned | Tool) -> str:
    """The version of an object as an opaque tag. It contains the object's id, if any, so a recreated object differs."""
    match thing:
        case Tool():
            content = b"\0".join((thing.definition, thing.plan, thing.safety.encode(), thing.source_name.encode()))
            return f"{thing.operation}.{hashlib.blake2b(content, digest_size=8).hexdigest()}"
        case _:
            return f"{thing.id}.{thing.version}"


def check_version(thing: Versioned, expected: Expected) -> None:
    """Refuse a change unless the object's version is an expected one.

    Raises:
        PreconditionFailed: the current version matches no expected tag.
    """
    check_tag(tag_of(thing), expected)


def check_tag(tag: str, expected: Expected) -> None:
    """Refuse a change unless this tag is an expected one.

    Raises:
        PreconditionFailed: the tag is not among the expected ones.
    """
    if expected is None or ANY in expected or tag in expected:  # guard: change-of-a-known-version
        return
    raise PreconditionFailed("the object has changed; read it again")
