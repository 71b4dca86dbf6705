"""Routes of the console pages: `/approvals`, `/approvals/{id}`, sign-in and sign-out.

A POST must come from a page of this gateway: its `Origin` is compared with `Host`, and forms within a session also
contain a CSRF token. `gateway.web.console.sessions` implements the sessions, `responder.py` renders the pages.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.share import FairSlotPool
from gateway.errors import Forbidden, GatewayError, LimitExceeded, Unauthenticated
from gateway.identity.authenticator import Authenticator
from gateway.identity.refusal_trail import note_refusal
from gateway.web.authentication import address_of
from gateway.web.console import pages
from gateway.web.console.responder import ApprovalResponder, Approver
from gateway.web.console.sessions import ConsoleSession, ConsoleSessions, EndedSessions
from gateway.web.html.documents import HEADERS, page, refuse, respond
from gateway.web.html.forms import FORM, check_same_origin, read_form

_LIST = "/approvals"
_TARGET = re.compile(r"/approvals(?:/apr_[0-9a-z]{20})?")
_SLOTS, _QUEUE = 8, 64
_Page = Callable[[Request, ConsoleSession], Awaitable[Response]]


class ApprovalPages:
    """The approval pages; `keys` encrypt the session cookies."""

    def __init__(
        self, catalog: CatalogContext, credentials: Authenticator, ended: EndedSessions, *, keys: Sequence[bytes]
    ) -> None:
        self._refusals = credentials.refusals
        self._responder = ApprovalResponder(catalog, credentials.refusals)
        self._sessions = ConsoleSessions(keys, credentials, ended)
        self.slot_pool = FairSlotPool("console pages", slots=_SLOTS, queue=_QUEUE)
        """Keyed by the client's address for sign-ins and session lookups, by the tenant for the pages."""

    @property
    def routes(self) -> list[Route]:
        """The routes of all pages."""
        return [
            Route("/approvals/sign-in", self._with_error_pages(self._sign_in), methods=["GET", "POST"]),
            Route(
                "/approvals/sign-out", self._with_error_pages(self._within_session(self._sign_out)), methods=["POST"]
            ),
            Route(_LIST, self._with_error_pages(self._within_session(self._list)), methods=["GET"]),
            Route("/approvals/{approval}", self._with_error_pages(self._within_session(self._show)), methods=["GET"]),
            Route(
                "/approvals/{approval}", self._with_error_pages(self._within_session(self._decide)), methods=["POST"]
            ),
        ]

    def _with_error_pages(
        self, handler: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Reject forms posted from other sites, and render errors as HTML pages."""

        async def run(request: Request) -> Response:
            try:
                if request.method == "POST":  # guard: console-origin
                    check_same_origin(request)
                return await handler(request)
            except GatewayError as error:
                note_refusal(self._refusals, request.scope.get("caller"), error, target=request.url.path)
                return refuse(error)

        return run

    def _within_session(self, handler: _Page) -> Callable[[Request], Awaitable[Response]]:
        """Serve the page within a session; a request without a session is redirected to the sign-in page."""

        async def run(request: Request) -> Response:
            async with self.slot_pool.hold(address_of(request.scope)):
                session = await self._sessions.find(request.cookies)
            if session is None:
                return RedirectResponse(_sign_in_url(request.url.path), 303, headers=HEADERS)
            request.scope["caller"] = session.principal
            async with self.slot_pool.hold(session.principal.tenant):
                response = await handler(request, session)
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
            async with self.slot_pool.hold(address_of(request.scope)):
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
        return await self._responder.list(request, self._approver(session))

    async def _show(self, request: Request, session: ConsoleSession) -> Response:
        return await self._responder.show(request, self._approver(session))

    async def _decide(self, request: Request, session: ConsoleSession) -> Response:
        form = await read_form(request)
        self._check_form(form, session)
        return await self._responder.decide(request, self._approver(session), form)

    def _approver(self, session: ConsoleSession) -> Approver:
        token = self._sessions.form_token(session)
        place = pages.ApprovalPlace(path=_LIST, token=token, sign_out=f"{_LIST}/sign-out", sign_out_token=token)
        return Approver(principal=session.principal, place=place)

    def _check_form(self, form: Mapping[str, str], session: ConsoleSession) -> None:
        if not self._sessions.is_form_token(session, form.get("token", "")):  # guard: console-form-token
            raise Forbidden("the form does not belong to this session; reload the page", rule=FORM)


def _sign_in_url(path: str) -> str:
    return f"/approvals/sign-in?next={quote(_target(path), safe='/')}"


def _target(asked: str | None) -> str:
    """Return the path after a sign-in. Only approval pages are accepted, which prevents open redirects."""
    return asked if asked is not None and _TARGET.fullmatch(asked) else _LIST  # guard: console-target
