"""The tenant page `/t/{tenant}/`: sign-in, setup of MCP clients, the user's accounts, and revocation of consents.

A person has signed in at the tenant's provider, or with a key of the tenant. Without a session, the page is the
sign-in form, which is the same for existing and missing tenants; the database is not read.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.catalog.identity.access_rules import find_rights
from gateway.catalog.identity.consents import page_consents, revoke_consent
from gateway.catalog.identity.issuers import page_issuers
from gateway.catalog.identity.limits import MAX_CONSENTS
from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.tenancy.client_setup import ClientTarget
from gateway.domain.tenancy.grants import Consent
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE, Profile
from gateway.errors import Forbidden, GatewayError, LimitExceeded, NotFound, Unauthenticated
from gateway.kinds.identity import MAX_ISSUERS
from gateway.kinds.selections import PROFILE_LIMIT
from gateway.web.authentication import address_of
from gateway.web.console.sessions import ConsoleSession, ConsoleSessions
from gateway.web.html.documents import page, respond
from gateway.web.html.forms import FORM, read_fields, read_form
from gateway.web.people.accounts import AccountPages
from gateway.web.people.sessions import PersonSession, principal_of
from gateway.web.people.sign_in import PAGE_HEADERS, SIGN_OUT, SignInPages
from gateway.web.people.tenant_page_content import (
    PageForms,
    accounts_content,
    clients_content,
    consents_content,
    profiles_content,
    registration_note,
    roles_content,
    sign_in_content,
    visitor_content,
)
from gateway.web.people.user_sessions import Session, UserSession, UserSessions
from gateway.web.problems import correlation_id_of

KEY_SESSION_PURPOSE = "key sessions of people"
KEY_COOKIE = "gateway-key"
_SLUG = re.compile(r"[a-z0-9-]{1,63}")
_CONSENT = re.compile(r"cns_[0-9a-z]{20}")
_REVOKE = "revoke consent"
_KEY_PLACEHOLDER = "YOUR-KEY"
_NOT_VALID = "This key is not valid here."


class PeoplePage:
    """The tenant page of all tenants; `keys` are the sessions of key holders."""

    def __init__(
        self, catalog: CatalogContext, pages: SignInPages, keys: ConsoleSessions, accounts: AccountPages
    ) -> None:
        self._catalog = catalog
        self._pages = pages
        self._keys = keys
        self._sessions = UserSessions(pages.sessions, keys)
        self._accounts = accounts

    @property
    def routes(self) -> list[Route]:
        """The routes of the page and of its forms."""
        return [
            Route("/t/{tenant}/", self._pages.guarded(self._show), methods=["GET"]),
            Route("/t/{tenant}/", self._pages.guarded(self._sign_in), methods=["POST"]),
            Route("/t/{tenant}/consents", self._pages.guarded(self._revoke), methods=["POST"]),
            Route("/t/{tenant}/key/sign-out", self._pages.guarded(self._sign_out), methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        session = await self._find(request)
        if session is None:
            return _show_sign_in(_slug_of(request))
        query = read_fields(request.url.query)
        profiles = await self._profiles_of(session)
        chosen = query.get("profile", profiles[0].name if profiles else None)
        person = session if isinstance(session, PersonSession) else None
        forms = PageForms(action=session.sign_out_path, token=self._sessions.form_token(session, SIGN_OUT))
        content = visitor_content(_slug_of(request), session.owner.subject, forms)
        if person is not None:
            roles = (await find_rights(person.tenant, self._catalog.store, principal_of(person))).roles
            content += roles_content(person.slug, roles)
        if chosen is not None:
            if chosen not in {profile.name for profile in profiles}:  # guard: tenant-page-profile
                raise NotFound("There is no such page.")
            target = self._target(request, chosen, key=_KEY_PLACEHOLDER if person is None else None)
            note = "" if person is None else await self._registration_note(person)
            content += profiles_content(_slug_of(request), profiles, chosen)
            content += clients_content(target, chosen, note=note)
        else:
            content += profiles_content(_slug_of(request), (), "")
        content += accounts_content(await self._accounts.table_for(session))
        if person is not None:
            forms = PageForms(action=f"/t/{person.slug}/consents", token=self._sessions.form_token(person, _REVOKE))
            content += consents_content(await self._consents_of(person), forms, is_revoked="revoked" in query)
        response = self._pages.show("Connect a client", content)
        response.headers.append("set-cookie", self._sessions.cookie_of(session))
        return response

    async def _find(self, request: Request) -> Session | None:
        """Return the session of the browser at the tenant; None if there is none.

        A key's session comes first, as on the pages of accounts. Without a session cookie, the database is not read.
        """
        slug = _slug_of(request)
        held = await self._keys.find(request.cookies)
        if held is not None and held.principal.slug == slug:  # guard: tenant-page-key-tenant
            request.scope["caller"] = held.principal
            return held
        if self._pages.sessions.has_cookie(slug, request.cookies):  # guard: tenant-page-stranger
            try:
                visit = await self._pages.visit(request)
            except NotFound:  # the tenant was removed, or no longer has an issuer
                return None
            return visit.session
        return None

    async def _sign_in(self, request: Request) -> Response:
        slug, form = _slug_of(request), await read_form(request)
        is_secure = request.headers.get("origin", "").startswith("https://")
        try:
            session = await self._keys.begin(
                form.get("key", "").strip(), address=address_of(request.scope), is_secure=is_secure
            )
        except Unauthenticated as error:
            return _show_sign_in(slug, text=_NOT_VALID, error=error)
        except (Forbidden, LimitExceeded) as error:
            return _show_sign_in(slug, text=error.message, error=error)
        if session.principal.slug != slug:  # guard: tenant-page-key-sign-in
            return _show_sign_in(slug, text=_NOT_VALID, error=Unauthenticated(_NOT_VALID))
        return self._redirect_to_page(session, slug)

    async def _sign_out(self, request: Request) -> Response:
        session, form = await self._find(request), await read_form(request)
        if isinstance(session, ConsoleSession):
            if not self._keys.is_form_token(session, form.get("token", "")):  # guard: tenant-page-key-form
                raise Forbidden("the form is not of this session; open the page again", rule=FORM)
            await self._keys.end(session)
        response = RedirectResponse(f"/t/{_slug_of(request)}/", 303, headers=PAGE_HEADERS)
        for cookie in self._keys.ended_cookies() if session is not None else ():
            response.headers.append("set-cookie", cookie)
        return response

    async def _revoke(self, request: Request) -> Response:
        session, form = await self._find(request), await read_form(request)
        if not isinstance(session, PersonSession):
            raise Forbidden("sign in first; open the page again")
        self._pages.sessions.check_form(session, _REVOKE, form)
        consent = form.get("consent", "")
        if _CONSENT.fullmatch(consent) is None:  # PostgreSQL stores no NUL
            raise NotFound("no such consent")
        by = Author(caller=principal_of(session), correlation_id=correlation_id_of(request.scope))
        await revoke_consent(session.tenant, self._catalog, consent, by=by, person=session.person.id)
        return self._redirect_to_page(session, session.slug, "?revoked=1#consents")

    async def _profiles_of(self, session: UserSession) -> Sequence[Profile]:
        """Return the profiles that the signed-in person may use, `default` first."""
        found = await PROFILES.page(session.tenant, self._catalog, after=None, limit=PROFILE_LIMIT.most + 1)
        own = [profile for profile in found if session.admits(profile.name)]
        return sorted(own, key=lambda profile: (profile.name != DEFAULT_PROFILE, profile.name))

    async def _registration_note(self, session: PersonSession) -> str:
        """Return why clients cannot register themselves; empty if an issuer of the tenant permits it."""
        found = await page_issuers(session.tenant, self._catalog, after=None, limit=MAX_ISSUERS)
        if any(each.enabled and each.sign_in is not None and each.sign_in.registration for each in found):
            return ""
        return registration_note(session.slug, session.issuer.name)

    async def _consents_of(self, session: PersonSession) -> Sequence[Consent]:
        person = session.person.id
        return await page_consents(session.tenant, self._catalog, after=None, limit=MAX_CONSENTS, person=person)

    def _target(self, request: Request, profile: str, *, key: str | None) -> ClientTarget:
        slug = _slug_of(request)
        is_default = profile == DEFAULT_PROFILE
        path = f"/t/{slug}/mcp" if is_default else f"/t/{slug}/{quote(profile)}/mcp"
        url = f"{self._pages.tenants.origin_of(request)}{path}"
        return ClientTarget(name=slug if is_default else f"{slug}-{profile}", url=url, key=key)

    def _redirect_to_page(self, session: Session, slug: str, more: str = "") -> Response:
        response = RedirectResponse(f"/t/{slug}/{more}", 303, headers=PAGE_HEADERS)
        response.headers.append("set-cookie", self._sessions.cookie_of(session))
        return response


def _slug_of(request: Request) -> str:
    slug = str(request.path_params["tenant"])
    if _SLUG.fullmatch(slug) is None:  # guard: tenant-page-slug
        raise NotFound("There is no such page.")
    return slug


def _show_sign_in(slug: str, *, text: str = "", error: GatewayError | None = None) -> Response:
    return respond(page("Sign in", sign_in_content(slug, text=text)), error=error, headers=PAGE_HEADERS)
