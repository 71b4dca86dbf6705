"""Approval pages of one approver: the list, one approval, and the decision.

`endpoint.py` serves the pages to holders of keys, `gateway.web.people.approvals` to people who signed in at a provider.
An approval is looked up only in the approver's tenant, so ids of other tenants are treated as unknown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gateway.catalog.calls.approvals import ApprovalVerdict, decide_approval, get_approval, page_approvals
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.calls.approvals import Approval, ApprovalFilter, ApprovalState
from gateway.domain.order import join_position, write_moment
from gateway.domain.tenancy.principals import Principal
from gateway.errors import BadInput, Conflict, Forbidden, GatewayError
from gateway.identity.refusal_trail import RefusalTrail, note_refusal
from gateway.web.console import pages
from gateway.web.console.limits import MAX_COMMENT_LENGTH, MAX_EARLIER, MAX_RECENT, MAX_WAITING
from gateway.web.html.documents import HEADERS, respond
from gateway.web.problems import correlation_id_of

_ID = re.compile(r"apr_[0-9a-z]{20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approver:
    """The principal that decides, and the path and form tokens of its session."""

    principal: Principal
    place: pages.ApprovalPlace


class ApprovalResponder:
    """Renders approvals for an approver, and stores decisions."""

    def __init__(self, catalog: CatalogContext, refusals: RefusalTrail) -> None:
        self._catalog = catalog
        self._refusals = refusals

    async def list(self, request: Request, approver: Approver) -> Response:
        """Show pending calls, and the most recently decided ones."""
        tenant, pending = approver.principal.tenant, ApprovalFilter(state=ApprovalState.PENDING)
        last, after = request.query_params.get("after"), None
        if last is not None:
            shown = await self._find(last, approver)
            after = join_position(write_moment(shown.created_at), shown.id)
        waiting = await page_approvals(tenant, self._catalog, pending, after=after, limit=MAX_WAITING)
        newest = await page_approvals(tenant, self._catalog, ApprovalFilter(), after=None, limit=MAX_RECENT)
        lately = [one for one in newest if one.state is not ApprovalState.PENDING]
        content = pages.approval_list(waiting, lately, approver.place, limit=MAX_WAITING)
        return _page("Approvals", content, approver)

    async def show(self, request: Request, approver: Approver) -> Response:
        """Show one approval."""
        approval = await self._find(request.path_params["approval"], approver)
        return await self._show_one(approval, approver)

    async def decide(self, request: Request, approver: Approver, form: Mapping[str, str]) -> Response:
        """Store the decision of a checked form, then redirect.

        If the approval is already decided, return the page with the stored decision.
        """
        approval, verdict = await self._find(request.path_params["approval"], approver), form.get("verdict")
        comment = " ".join(form.get("comment", "").split())
        if verdict not in {"approve", "deny"}:
            raise BadInput("choose Approve or Deny")
        if len(comment) > MAX_COMMENT_LENGTH or not comment.isprintable():
            too_long = BadInput(
                f"The comment must have at most {MAX_COMMENT_LENGTH} printable characters; nothing was stored."
            )
            return await self._show_one(approval, approver, text=too_long.message, error=too_long)
        decide = decide_approval(
            approver.principal.tenant,
            self._catalog,
            approval.id,
            ApprovalVerdict(is_approved=verdict == "approve", comment=comment),
            by=Author(caller=approver.principal, correlation_id=correlation_id_of(request.scope)),
            expected=frozenset({form.get("tag", "")}),
        )
        try:
            await decide
        except (Conflict, Forbidden) as error:  # a changed version raises Conflict too
            note_refusal(self._refusals, approver.principal, error, action="decide", target=approval.tool)
            now = await self._find(request.path_params["approval"], approver)
            reason = f"{error.message}." if isinstance(error, Forbidden) else pages.describe_state(now)
            text = Markup("Your decision was not stored: {}").format(reason)
            return await self._show_one(now, approver, text=text, error=error)
        return RedirectResponse(f"{approver.place.path}/{approval.id}", 303, headers=HEADERS)

    async def _find(self, named: str, approver: Approver) -> Approval:
        is_id = _ID.fullmatch(named) is not None  # PostgreSQL stores no NUL
        return await get_approval(approver.principal.tenant, self._catalog, named if is_id else "")

    async def _show_one(
        self, approval: Approval, approver: Approver, *, text: str = "", error: GatewayError | None = None
    ) -> Response:
        wanted = ApprovalFilter(tool=approval.tool)
        found = await page_approvals(approval.tenant, self._catalog, wanted, after=None, limit=MAX_EARLIER)
        earlier = next((one for one in found if one.id != approval.id and _was_approved(one)), None)
        content = pages.approval_content(
            approval, earlier, principal=approver.principal, place=approver.place, text=text
        )
        return _page(f"Call of {approval.tool}", content, approver, error=error)


def _page(title: str, content: Markup, approver: Approver, *, error: GatewayError | None = None) -> Response:
    return respond(pages.approval_page(title, content, approver.principal, approver.place), error=error)


def _was_approved(approval: Approval) -> bool:
    return approval.decided_by is not None and approval.state is not ApprovalState.DENIED
