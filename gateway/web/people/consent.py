"""The consent page `/t/{tenant}/oauth/consent`, shown before an authorization code is issued.

A person consents after the sign-in. The page is shown for each new combination of application, host, resource and
scopes. It is always shown for native applications without a secret, because only the person can identify them. A code
or an error is returned with `iss` (RFC 9207).
"""

import hashlib
from dataclasses import dataclass, replace
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.catalog.identity.consents import has_consented
from gateway.catalog.identity.grants import permit
from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.transaction import CatalogContext
from gateway.domain.refusals import ClientRefused, SignInExpired, SignInRefused
from gateway.domain.tenancy.grants import OAuthClient
from gateway.domain.tenancy.redirect_uris import form_source_of, is_native, is_registered
from gateway.errors import BadInput, GatewayError, NotFound
from gateway.identity.oauth.clients import ClientDirectory
from gateway.identity.oauth.provider_checks import ProviderChecks
from gateway.identity.oauth.requests import AuthorizationRequest, SealedRequests, answer_uri
from gateway.web.authentication import address_of
from gateway.web.html.documents import page, respond
from gateway.web.html.forms import read_fields, read_form
from gateway.web.people.consent_pages import back_content, consent_content
from gateway.web.people.sessions import PersonSession
from gateway.web.people.sign_in import PAGE_HEADERS, PageVisit, SignInPages, SignInRequest
from gateway.web.problems import correlation_id_of

_PATH = "/t/{tenant}/oauth/consent"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConsentRequest:
    """An authorization request that awaits consent, its encrypted text, and its client."""

    text: str
    request: AuthorizationRequest
    client: OAuthClient

    @property
    def purpose(self) -> str:
        """The purpose of the CSRF token, which binds the form to this request."""
        return f"consent {hashlib.sha256(self.text.encode()).hexdigest()}"

    def granted_to(self, session: PersonSession) -> "_ConsentRequest":
        """Return the request with the scopes that the client gets: no more than the issuer granted to the person."""
        scopes = session.issuer.granted_scopes(session.sign_in.claims, self.request.scopes)
        return replace(self, request=replace(self.request, scopes=scopes))


class ConsentPages:
    """The consent page of all tenants."""

    def __init__(
        self,
        catalog: CatalogContext,
        pages: SignInPages,
        clients: ClientDirectory,
        checks: ProviderChecks,
        *,
        requests: SealedRequests,
    ) -> None:
        self._catalog = catalog
        self._pages = pages
        self._clients = clients
        self._checks = checks
        self._requests = requests

    @property
    def routes(self) -> list[Route]:
        """The routes of the page."""
        return [
            Route(_PATH, self._pages.guarded(self._show), methods=["GET"]),
            Route(_PATH, self._pages.guarded(self._decide), methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        visit = await self._pages.visit(request)
        asked = await self._read(visit, read_fields(request.url.query).get("request", ""))
        admitted = await self._admit(visit, asked)
        if isinstance(admitted, Response):
            return admitted
        asked = asked.granted_to(admitted)
        if not await self._is_consented(admitted, asked):
            return self._show_consent_page(visit, admitted, asked)
        return await self._issue_code(visit, admitted, asked, is_given=False)

    async def _decide(self, request: Request) -> Response:
        visit, form = await self._pages.visit(request), await read_form(request)
        asked = await self._read(visit, form.get("request", ""))
        admitted = await self._admit(visit, asked)
        if isinstance(admitted, Response):
            return admitted
        asked = asked.granted_to(admitted)
        self._pages.sessions.check_form(admitted, asked.purpose, form)
        choice = form.get("choice")
        if choice == "deny":
            return self._redirect_to_client(visit, admitted, asked, {"error": "access_denied"})
        if choice != "allow":  # guard: consent-choice
            raise BadInput("choose Allow or Do not allow")
        return await self._issue_code(visit, admitted, asked, is_given=True)

    async def _read(self, visit: PageVisit, text: str) -> _ConsentRequest:
        """Decrypt an authorization request, and check its client and redirect URI again.

        Raises:
            SignInExpired: the text is not a request of this tenant, or is older than ten minutes.
            ClientRefused: the client was deleted, or no longer has this redirect URI.
        """
        found = self._requests.read(visit.found.tenant, text)
        if found is None:
            raise SignInExpired("The application's request is too old or not valid; begin again in the application.")
        client = await self._clients.find(visit.found, found.client, address=address_of(visit.request.scope))
        if not is_registered(found.redirect_uri, client.redirect_uris):  # guard: consent-redirect-registered
            raise ClientRefused("The application no longer has this redirect URI; begin again in the application.")
        return _ConsentRequest(text=text, request=found, client=client)

    async def _admit(self, visit: PageVisit, asked: _ConsentRequest) -> PersonSession | Response:
        """Return the session if a code may be issued to its person; otherwise a redirect to the sign-in or an error.

        The sign-in is repeated for additional scopes, and if the provider no longer knows the person.
        """
        session, request = visit.session, asked.request
        wanted = frozenset(request.scopes)
        target = f"{_PATH.replace('{tenant}', visit.slug)}?request={quote(asked.text)}"
        if session is None:
            return self._pages.require(visit, SignInRequest(target=target, scopes=wanted))
        own = wanted & session.issuer.named_scopes
        again = SignInRequest(target=target, scopes=own, issuer=session.issuer)
        if not own <= session.sign_in.requested_scopes:
            return self._pages.require(visit, again)
        try:
            holder = await self._checks.check(visit.found.tenant, session)
        except SignInRefused:
            return self._pages.require(visit, again)
        try:
            await PROFILES.get(visit.found.tenant, self._catalog, request.profile)
        except NotFound:
            return self._refuse(visit, asked, "The tenant has no such profile.", error="invalid_target")
        # guard: consent-rules
        if not holder.issuer.admits_client(holder.sign_in.claims, request.profile, request.scopes):
            reason = (
                "No rule of the issuer admits you to this profile with the scopes that the application requests and the"
                " provider grants; ask the tenant's administrator."
            )
            return self._refuse(visit, asked, reason, error="access_denied")
        return PersonSession(
            issuer=holder.issuer,
            sign_in=holder.sign_in,
            person=holder.person,
            tenant=session.tenant,
            slug=session.slug,
            is_secure=session.is_secure,
        )

    async def _is_consented(self, session: PersonSession, asked: _ConsentRequest) -> bool:
        """True if the page can be skipped: a consent is stored, and a secret or a host identifies the application."""
        if is_native(asked.request.redirect_uri) and not asked.client.is_confidential:  # guard: consent-native
            return False
        wanted = asked.request.permission(asked.client)
        return await has_consented(session.tenant, self._catalog, session.person, wanted)

    def _show_consent_page(self, visit: PageVisit, session: PersonSession, asked: _ConsentRequest) -> Response:
        token = self._pages.sessions.form_token(session, asked.purpose)
        target = f"{_PATH.replace('{tenant}', visit.slug)}?request={quote(asked.text)}"
        again = f"/t/{visit.slug}/sign-in?again=1&next={quote(target, safe='')}"
        content = consent_content(session, asked.client, asked.request, token=token, request=asked.text, again=again)
        response = self._pages.show("Allow an application", content, session)
        # Chromium applies the directive to redirects that follow a form.
        source = f"form-action 'self' {form_source_of(asked.request.redirect_uri)}"
        policy = response.headers["content-security-policy"]
        response.headers["content-security-policy"] = policy.replace("form-action 'self'", source)
        return response

    async def _issue_code(
        self, visit: PageVisit, session: PersonSession, asked: _ConsentRequest, *, is_given: bool
    ) -> Response:
        code = await permit(
            session.tenant,
            self._catalog,
            session,
            asked.request.permission(asked.client),
            is_given=is_given,
            correlation_id=correlation_id_of(visit.request.scope),
        )
        return self._redirect_to_client(visit, session, asked, {"code": code})

    def _redirect_to_client(
        self, visit: PageVisit, session: PersonSession, asked: _ConsentRequest, members: dict[str, str]
    ) -> Response:
        """Return the redirect to the application."""
        uri = answer_uri(asked.request, f"{visit.base}/t/{visit.slug}", members)
        response = RedirectResponse(uri, 303, headers=PAGE_HEADERS)
        response.headers.append("set-cookie", self._pages.sessions.cookie_of(session))
        return response

    def _refuse(self, visit: PageVisit, asked: _ConsentRequest, reason: str, *, error: str) -> Response:
        """Return a page with the reason and a link back. The person decides whether to follow the link."""
        uri = answer_uri(asked.request, f"{visit.base}/t/{visit.slug}", {"error": error})
        refused: GatewayError = SignInRefused(reason) if error == "access_denied" else BadInput(reason)
        content = back_content(reason, asked.request.redirect_uri, uri)
        return respond(page("Not possible", content), error=refused, headers=PAGE_HEADERS)
