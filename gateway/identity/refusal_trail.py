"""Refused requests for the audit trail: what an error of a known principal becomes, for all faces of the gateway."""

from collections.abc import Mapping
from typing import Protocol

import structlog
from msgspec.structs import replace

from gateway.domain.audit import SIGN_IN, CallRecord, RuleKind, refused
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ScopeMissing
from gateway.domain.tenancy.principals import Caller, Principal
from gateway.errors import DecidingRule, Forbidden, GatewayError, Unauthenticated

log = structlog.get_logger(__name__)

REQUEST = "request"
"""Action of the entries of refused requests that name no primitive."""
_SIGN_IN_REASONS: Mapping[str, str] = {
    "wrong": "the secret is not that of the key",
    "ended": "the key is revoked or has expired, or its old secret has ended",
    "denied": "the person is denied",
    "rules": "no rule of the issuer admits the person",
    "issuer": "the response is of another issuer",
}


class RefusalTrail(Protocol):
    """The audit trail of refusals; noting one waits for nothing, and never fails."""

    def note(self, record: CallRecord, rule: DecidingRule, reason: str) -> None:
        """Note one refusal; a record without a tenant is a stranger's."""
        ...


class _NoTrail:
    """The trail of a process without an audit writer, such as a test of one part."""

    def note(self, record: CallRecord, rule: DecidingRule, reason: str) -> None:
        """Drop the refusal."""


NO_TRAIL = _NoTrail()


def note_sign_in(trail: RefusalTrail, tenant: TenantId, principal: str, reason: str) -> None:
    """Note a failed sign-in of a known principal; `reason` is the last part of the outcome."""
    record = refused(tenant, principal, SIGN_IN, f"{Unauthenticated.code}.{reason}")
    trail.note(record, DecidingRule(RuleKind.CREDENTIAL, reason), _SIGN_IN_REASONS.get(reason, ""))


def note_refusal(
    trail: RefusalTrail,
    caller: Caller | None,
    error: GatewayError,
    *,
    action: str = REQUEST,
    target: str = "",
    facts: Mapping[str, object] | None = None,
) -> None:
    """Note an error if it is a refusal, once: several layers may see the same error.

    A failure has no rule, and the operator's requests belong to no tenant's trail.
    """
    rule = rule_of(error)
    if rule is not None and isinstance(caller, Principal) and not error.is_noted:
        error.is_noted = True
        record = refused(caller.tenant, caller.name, action, error.code, subject=caller.subject, target=target)
        trail.note(replace(record, detail=dict(facts or {})), rule, error.message)
        log.debug(
            "request_refused",
            action=action,
            target=record.tool,
            tenant=caller.slug,
            principal=caller.name,
            outcome=error.code,
            rule=rule.kind,
            reason=error.message,
        )


def rule_of(error: GatewayError) -> DecidingRule | None:
    """Return the rule that refused a request; None if the request failed for another reason."""
    if error.rule is None and isinstance(error, Forbidden):
        scopes = " ".join(error.scopes) if isinstance(error, ScopeMissing) else ""
        return DecidingRule(RuleKind.SCOPE, scopes)
    return error.rule
