"""Routes of the console pages: `/approvals`, `/approvals/{id}`, sign-in and sign-out.

A POST must come from a page of this gateway: its `Origin` is compared with `Host`, and a form of a session carries a
token as well. An approval is looked up only in the tenant of the session, so the id of another tenant and an unknown id
give the same response. `gateway.web.console.sessions` explains sessions.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import quote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.catalog.calls.approvals import ApprovalVerdict, decide_approval, get_approval, page_approvals
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.calls.approvals import Approval, ApprovalFilter, ApprovalState
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.order import join_position, write_moment
from gateway.errors import BadInput, Conflict, Forbidden, GatewayError, LimitExceeded, Unauthenticated
from gateway.identity.authenticator import Authenticator
from gateway.web.authentication import address_of
from gateway.web.console import pages
from gateway.web.console.sessions import ConsoleSession, ConsoleSessions, EndedSessions
from gateway.web.html.documents import HEADERS, page, refuse, respond
from gateway.web.html.forms import check_own, read_form
from gateway.web.problems import correlation_id_of

_LIST = "/approvals"
_TARGET = re.compile(r"/approvals(?:/apr_[0-9a-z]{20})?")
_SLOTS, _QUEUE = 8, 64
_MAX_WAITING, _MAX_RECENT = 100, 50
_MAX_EARLIER = 50
"""Number of approvals of a tool that are searched for the last approved one."""
_Page = Callable[[Request, ConsoleSession], Awaitable[Response]]


class ApprovalPages:
    """The pages of approvals; `keys` seal the sessions."""

    def __init__(
        self, catalog: CatalogContext, credentials: Authenticator, ended: EndedSessions, *, keys: Sequence[bytes]
    ) -> None:
        self._catalog = catalog
        self._sessions = ConsoleSessions(keys, credentials, ended)
        self.places = FairSlotPool("console pages", slots=_SLOTS, queue=_QUEUE)
        """Keyed by the tenant of the session; without a session, by the client's address."""

    @property
    def routes(self) -> list[Route]:
        """The routes of all pages."""
        return [
            Route("/approvals/sign-in", self._guarded(self._sign_in), methods=["GET", "POST"]),
            Route("/approvals/sign-out", self._guarded(self._inside(self._sign_out)), methods=["POST"]),
            Route(_LIST, self._guarded(self._inside(self._list)), methods=["GET"]),
            Route("/approvals/{approval}", self._guarded(self._inside(self._show)), methods=["GET"]),
            Route("/approvals/{approval}", self._guarded(self._inside(self._decide)), methods=["POST"]),
        ]

    def _guarded(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Refuse a form of another page, and turn refusals into pages."""

        async def run(request: Request) -> Response:
            try:
                if request.method == "POST":  # guard: console-origin
                    check_own(request)
                return await answer(request)
            except GatewayError as error:
                return refuse(error)

        return run

    def _inside(self, answer: _Page) -> Callable[[Request], Awaitable[Response]]:
        """Serve the page within a session; a GET without one leads to the sign-in."""

        async def run(request: Request) -> Response:
            async with self.places.hold(address_of(request.scope)):
                session = await self._sessions.find(request.cookies)
            if session is None:
                return RedirectResponse(_sign_in_url(request.url.path), 303, headers=HEADERS)
            async with self.places.hold(session.principal.tenant):
                response = await answer(request, session)
            if "set-cookie" not in response.headers:
                response.headers.append("set-cookie", self._sessions.cookie_of(session))
            return response

        return run

    async def _sign_in(self, request: Request) -> Response:
        if request.method != "POST":
            return self._show_sign_in(_target(request.query_params.get("next")))
        form = await read_form(request)
        target, origin = _target(form.get("next")), request.headers.get("origin", "")
        try:
            async with self.places.hold(address_of(request.scope)):
                session = await self._sessions.begin(
                    form.get("key", "").strip(),
                    address=address_of(request.scope),
                    is_secure=origin.startswith("https://"),
                )
        except Unauthenticated as error:
            return self._show_sign_in(target, text="This key is not valid.", error=error)
        except (Forbidden, LimitExceeded) as error:
            return self._show_sign_in(target, text=error.message, error=error)
        response = RedirectResponse(target, 303, headers=HEADERS)
        response.headers.append("set-cookie", self._sessions.cookie_of(session))
        return response

    def _show_sign_in(self, target: str, *, text: str = "", error: GatewayError | None = None) -> Response:
        return respond(page("Sign in", pages.sign_in_form(target, text=text)), error=error)

    async def _sign_out(self, request: Request, session: ConsoleSession) -> Response:
        self._check_form(await read_form(request), session)
        await self._sessions.end(session)
        response = RedirectResponse(_sign_in_url(_LIST), 303, headers=HEADERS)
        for cookie in self._sessions.ended_cookies():
            response.headers.append("set-cookie", cookie)
        return response

    async def _list(self, request: Request, session: ConsoleSession) -> Response:
        tenant, pending = session.principal.tenant, ApprovalFilter(state=ApprovalState.PENDING)
        last, after = request.query_params.get("after"), None
        if last is not None:
            shown = await self._find(last, session)
            after = join_position(write_moment(shown.created_at), shown.id)
        waiting = await page_approvals(tenant, self._catalog, pending, after=after, limit=_MAX_WAITING)
        newest = await page_approvals(tenant, self._catalog, ApprovalFilter(), after=None, limit=_MAX_RECENT)
        lately = [one for one in newest if one.state is not ApprovalState.PENDING]
        return self._page("Approvals", pages.approval_list(waiting, lately, limit=_MAX_WAITING), session)

    async def _show(self, request: Request, session: ConsoleSession) -> Response:
        approval = await self._find(request.path_params["approval"], session)
        return await self._show_one(approval, session)

    async def _decide(self, request: Request, session: ConsoleSession) -> Response:
        """Store the decision, then lead to the page; a late decision gets the page with the one that was stored."""
        form = await read_form(request)
        self._check_form(form, session)
        approval, verdict = await self._find(request.path_params["approval"], session), form.get("verdict")
        comment = " ".join(form.get("comment", "").split())
        if verdict not in {"approve", "deny"}:
            raise BadInput("choose Approve or Deny")
        if len(comment) > pages.MAX_COMMENT_LENGTH or not comment.isprintable():
            text = f"The comment must have at most {pages.MAX_COMMENT_LENGTH} printable characters; nothing was stored."
            return await self._show_one(approval, session, text=text, error=BadInput(text))
        decide = decide_approval(
            session.principal.tenant,
            self._catalog,
            approval.id,
            ApprovalVerdict(is_approved=verdict == "approve", comment=comment),
            by=Author(caller=session.principal, correlation_id=correlation_id_of(request.scope)),
            expected=frozenset({form.get("tag", "")}),
        )
        try:
            await decide
        except (Conflict, Forbidden) as error:  # a Conflict is also that of another version
            now = await self._find(request.path_params["approval"], session)
            text = f"Your decision was not stored. {pages.describe_state(now)}"
            if isinstance(error, Forbidden):
                text = f"Your decision was not stored: {error.message}."
            return await self._show_one(now, session, text=text, error=error)
        return RedirectResponse(f"{_LIST}/{approval.id}", 303, headers=HEADERS)

    async def _find(self, named: str, session: ConsoleSession) -> Approval:
        is_id = _TARGET.fullmatch(f"{_LIST}/{named}") is not None  # PostgreSQL stores no NUL
        return await get_approval(session.principal.tenant, self._catalog, named if is_id else "")

    async def _show_one(
        self, approval: Approval, session: ConsoleSession, *, text: str = "", error: GatewayError | None = None
    ) -> Response:
        wanted = ApprovalFilter(tool=approval.tool)
        found = await page_approvals(approval.tenant, self._catalog, wanted, after=None, limit=_MAX_EARLIER)
        earlier = next((one for one in found if one.id != approval.id and _was_approved(one)), None)
        content = pages.approval_content(
            approval,
            earlier,
            principal=session.principal,
            token=self._sessions.form_token(session),
            text=text,
        )
        return self._page(f"Call of {approval.tool}", content, session, error=error)

    def _check_form(self, form: Mapping[str, str], session: ConsoleSession) -> None:
        if not self._sessions.is_form_token(session, form.get("token", "")):  # guard: console-form-token
            raise Forbidden("the form is not of this session; open the page again")

    def _page(
        self, title: str, content: Markup, session: ConsoleSession, *, error: GatewayError | None = None
    ) -> Response:
        token = self._sessions.form_token(session)
        return respond(pages.approval_page(title, content, session.principal, token=token), error=error)


def _was_approved(approval: Approval) -> bool:
    return approval.decided_by is not None and approval.state is not ApprovalState.DENIED


def _sign_in_url(path: str) -> str:
    return f"/approvals/sign-in?next={quote(_target(path), safe='/')}"


def _target(asked: str | None) -> str:
    """The page that follows a sign-in; only pages of this console, so that a link cannot redirect elsewhere."""
    return asked if asked is not None and _TARGET.fullmatch(asked) else _LIST  # guard: console-target
