"""Approval pages for people who sign in at their tenant's provider: `/t/{tenant}/approvals`.

Each request checks that the person has the approver role. The person's groups are refreshed from the provider: for a
page if they are older than five minutes, for a decision always. While the provider is unavailable, nothing is approved;
a denial accepts claims of the last hour. Access tokens are not accepted here; the session is a cookie of the browser in
which the person signed in.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.catalog.identity.access_rules import find_rights
from gateway.catalog.transaction import CatalogContext
from gateway.domain.refusals import SignInRefused
from gateway.domain.tenancy.access import Role
from gateway.domain.tenancy.keys import Scope
from gateway.errors import Forbidden
from gateway.identity.oauth.provider_checks import FRESH, STALE, ProviderChecks
from gateway.web.console.pages import ApprovalPlace
from gateway.web.console.responder import ApprovalResponder, Approver
from gateway.web.html.forms import read_form
from gateway.web.people.sessions import PersonSession, principal_of
from gateway.web.people.sign_in import SIGN_OUT, SignInPages, SignInRequest

_PURPOSE = "approvals"
_NOW = timedelta(0)
_Page = Callable[[Request, Approver], Awaitable[Response]]


class PersonApprovalPages:
    """The approval pages of all tenants, for browser sessions of people."""

    def __init__(self, catalog: CatalogContext, pages: SignInPages, checks: ProviderChecks) -> None:
        self._catalog = catalog
        self._pages = pages
        self._checks = checks
        self._responder = ApprovalResponder(catalog, pages.tenants.refusals)

    @property
    def routes(self) -> list[Route]:
        """The routes of all pages."""
        path, guarded = "/t/{tenant}/approvals", self._pages.guarded
        return [
            Route(path, guarded(self._within_session(self._responder.list)), methods=["GET"]),
            Route(f"{path}/{{approval}}", guarded(self._within_session(self._responder.show)), methods=["GET"]),
            Route(f"{path}/{{approval}}", guarded(self._decide), methods=["POST"]),
        ]

    def _within_session(self, handler: _Page) -> Callable[[Request], Awaitable[Response]]:
        """Serve a page to an approver. Without a session, or if the sign-in is too old, redirect to the sign-in."""

        async def run(request: Request) -> Response:
            visit = await self._pages.visit(request)
            if visit.session is None:
                return self._pages.require(visit, SignInRequest(target=request.url.path))
            try:
                approver = await self._admit(visit.session, within=FRESH)
            except SignInRefused:
                return self._pages.require(visit, SignInRequest(target=request.url.path, is_forced=True))
            response = await handler(request, approver)
            response.headers.append("set-cookie", self._pages.sessions.cookie_of(visit.session))
            return response

        return run

    async def _decide(self, request: Request) -> Response:
        """Store a decision of the session's person, if the provider's current claims still give the role."""
        session = (await self._pages.visit(request)).session
        if session is None:
            raise Forbidden("sign in first; open the page again")
        form = await read_form(request)
        self._pages.sessions.check_form(session, _PURPOSE, form)
        # people can stop a call while the provider is down; what they approve runs, so its answer is necessary
        unasked = STALE if form.get("verdict") == "deny" else _NOW  # guard: approval-provider-asked
        return await self._responder.decide(request, await self._admit(session, within=_NOW, unasked=unasked), form)

    async def _admit(self, session: PersonSession, *, within: timedelta, unasked: timedelta = STALE) -> Approver:
        """Return the person as an approver; the ages are those of the claims from the provider.

        Raises:
            Forbidden: the person lacks the approver role, or no rule of the issuer admits the person any more.
            SignInRefused: the provider no longer knows the person, or the sign-in is too old.
            Unavailable: the provider is unavailable.
        """
        claims = (await self._checks.check(session.tenant, session, within=within, unasked=unasked)).sign_in.claims
        principal = replace(principal_of(session), packed_groups=session.issuer.packed_groups(claims))
        if not session.issuer.admits(claims):  # guard: approver-admitted
            raise Forbidden("no rule of the issuer admits you any more; ask the administrator of the tenant")
        rights = await find_rights(session.tenant, self._catalog.store, principal)
        if Role.APPROVE not in rights.roles:  # guard: approver-role
            raise Forbidden("you have no role to decide about calls of this tenant; ask its administrator")
        sessions, path = self._pages.sessions, f"/t/{session.slug}"
        place = ApprovalPlace(
            path=f"{path}/approvals",
            token=sessions.form_token(session, _PURPOSE),
            sign_out=f"{path}/sign-out",
            sign_out_token=sessions.form_token(session, SIGN_OUT),
        )
        return Approver(principal=replace(principal, scopes=frozenset({Scope.APPROVE})), place=place)
