"""The refusal of a call that waits for an approval, or whose approval it cannot use."""

from collections.abc import Mapping
from datetime import UTC
from typing import Final

from gateway.calls.invocation import Invocation
from gateway.catalog.calls.approval_changes import OPERATOR, page_of
from gateway.catalog.identity.keys import has_approver
from gateway.catalog.transaction import CatalogContext
from gateway.domain.calls.approvals import Approval, ApprovalState, is_same_subject
from gateway.domain.refusals import ApprovalRequired
from gateway.domain.tenancy.policy import Decision

_STATE_MESSAGES: Final[Mapping[ApprovalState, str]] = {
    ApprovalState.PENDING: (
        "Another person must approve this call: {id}, until {until}{at}. Nothing was done. "
        "Call again with the same arguments: the call runs once it is approved."
    ),
    ApprovalState.APPROVED: "The call is approved ({id}), but the catalog or the key has changed; call again.",
    ApprovalState.DENIED: "A person denied this call ({id}). Do not call again with the same arguments.",
    ApprovalState.RUNNING: "Another request is running the approved call ({id}) and receives its result.",
    ApprovalState.DONE: "Another request ran the approved call ({id}). A further run needs a new approval.",
    ApprovalState.UNKNOWN: (
        "The approved call ({id}) was interrupted; the outcome is unknown. Check that before you call again."
    ),
}
_ENDED_MESSAGE: Final = "The approval {id} is {state}; nothing was done. Call again to request a new approval."


async def refuse(call: Invocation, catalog: CatalogContext, found: Approval) -> ApprovalRequired:
    """Return the error of a call with the state of its approval."""
    facts = facts_of(catalog, found)
    place = f" at {facts['url']}" if "url" in facts else ""
    text = _STATE_MESSAGES.get(found.state, _ENDED_MESSAGE).format(
        id=found.id, state=found.state.value, until=facts["expires_at"], at=place
    )
    if found.state is ApprovalState.PENDING:
        text += await _describe_deciders(call, catalog, found)
    if found.comment and found.state is ApprovalState.DENIED:
        text += f" The reason given: {found.comment}"
    return ApprovalRequired(text, approval=facts)


async def _describe_deciders(call: Invocation, catalog: CatalogContext, pending: Approval) -> str:
    """The deciders that are not evident: the user of another client, or only the operator."""
    text = ""
    if call.judged is not None and call.judged.decision is Decision.CONFIRM:
        text = " With a client that can ask its user (elicitation), the user confirms it instead."
    if await has_approver(pending.tenant, catalog, call.principal.subject):
        return text
    is_own = is_same_subject(pending.subject, OPERATOR)
    decider = "the operator cannot decide on its own call" if is_own else "only the operator decides"
    absent = "No key of another subject has the scope approve, and no person the role"
    return f"{text} {absent}; {decider}. An admin creates such a key: `gateway key create NAME --scope approve`."


def facts_of(catalog: CatalogContext, approval: Approval) -> Mapping[str, str]:
    """The members of `gateway/approval`: id, state, expiry, and the page if there is one."""
    expires_at = approval.expires_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    facts = {"id": approval.id, "state": approval.state.value, "expires_at": expires_at}
    url = page_of(catalog, approval.id)
    return facts if url is None else {**facts, "url": url}
