"""Routes of sign-in: `/t/{tenant}/sign-in`, the callback of the provider, and sign-out.

Other pages redirect here if there is no session (`SignInPages.require`), and name the path to which the browser
returns.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.refusals import SignInExpired
from gateway.domain.tenancy.issuers import Issuer, TenantIssuers
from gateway.errors import BadInput, GatewayError, NotFound
from gateway.identity.oauth.limits import PENDING_S
from gateway.identity.oauth.sign_in import AuthorizationResponse, PendingSignIn, SignInFlow
from gateway.identity.refusal_trail import note_refusal
from gateway.web.html.documents import HEADERS, page, refuse, respond, visible
from gateway.web.html.forms import check_same_origin, read_fields, read_form
from gateway.web.html.limits import MAX_COOKIE_BYTES
from gateway.web.html.sealed_cookies import SealedCookies
from gateway.web.people.limits import MAX_PENDING
from gateway.web.people.sessions import PersonSession, PersonSessions, begin, principal_of
from gateway.web.people.tenants import TenantLookup, sign_in_issuers
from gateway.web.problems import correlation_id_of

PENDING_PURPOSE = "pending sign-ins"
PAGE_HEADERS = {name: value for name, value in HEADERS.items() if name != "cross-origin-opener-policy"}
"""Headers without a cross-origin opener policy: clients open these pages in a popup, which needs its opener."""
_SLOTS, _QUEUE = 64, 256
_SUFFIX = 8
"""Number of characters of the state in a cookie's name, so that each pending sign-in has its own cookie."""
_TARGET = re.compile(r"/t/(?P<slug>[a-z0-9-]{1,63})/(?P<path>[A-Za-z0-9._~/-]*)(?:\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?")
SIGN_OUT = "sign-out"
"""The purpose of the token of sign-out forms."""
_CHOICE = Markup("""<p>Choose the account with which you use the tenant <strong>{slug}</strong>.</p>
<ul>{links}</ul>""")
_LINK = Markup('<li><a href="/t/{slug}/sign-in?{query}">Sign in with {name}</a></li>\n')
_SIGNED_IN = Markup("""<p>You are signed in to the tenant <strong>{slug}</strong> as
<strong><bdi>{person}</bdi></strong>.</p>
<form method="post" action="/t/{slug}/sign-out">
<input type="hidden" name="token" value="{token}">
<p><button>Sign out</button></p>
</form>
<p><a href="/t/{slug}/">Connect a client</a></p>""")
_SIGNED_OUT = Markup("""<p role="status">You are signed out of the tenant <strong>{slug}</strong> in this browser.</p>
<p><a href="/t/{slug}/sign-in?again=1">Sign in again</a></p>""")
_NO_ACCOUNTS = Markup("""<p class="alert" role="alert">There is no sign-in with an account here.</p>
<p><a href="/t/{slug}/">Sign in with a key</a>, or ask the administrator for the address of your tenant.</p>""")

PageHandler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVisit:
    """A request for a page of a tenant; `base` is scheme and host of the gateway as the browser sees them."""

    request: Request
    slug: str
    found: TenantIssuers
    base: str
    session: PersonSession | None

    @property
    def is_secure(self) -> bool:
        """True if the browser reaches the gateway over TLS."""
        return self.base.startswith("https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRequest:
    """A sign-in that a page requires; the browser then continues at the path `target`."""

    target: str
    scopes: frozenset[str] = frozenset()
    """Scopes of the provider in addition to those of the issuer's client."""
    issuer: Issuer | None = None
    """The issuer of the sign-in; None: the tenant's only one, or the one that the person chooses."""
    is_forced: bool = False
    """True if the person must sign in again although the provider has a session."""


class SignInPages:
    """The sign-in pages; `keys` encrypt the cookies of pending sign-ins."""

    def __init__(
        self, tenants: TenantLookup, flow: SignInFlow, sessions: PersonSessions, *, keys: Sequence[bytes]
    ) -> None:
        self.tenants = tenants
        self.sessions = sessions
        self._flow = flow
        self._pending = SealedCookies(keys, "gateway-sign-in", life_s=PENDING_S, same_site="Lax")
        self.slot_pool = FairSlotPool("pages of people", slots=_SLOTS, queue=_QUEUE)
        """Keyed by the tenant in the path, because requests to one tenant's provider may take long."""

    @property
    def routes(self) -> list[Route]:
        """The routes of all pages."""
        return [
            Route("/t/{tenant}/sign-in", self.guarded(self._open), methods=["GET"]),
            Route("/t/{tenant}/sign-in/{issuer}/callback", self.guarded(self._handle_callback), methods=["GET"]),
            Route("/t/{tenant}/sign-out", self.guarded(self._sign_out), methods=["POST"]),
        ]

    def guarded(self, response: PageHandler) -> PageHandler:
        """Refuse forms of other sites, limit concurrent requests, and convert refusals to HTML pages."""

        async def run(request: Request) -> Response:
            try:
                if request.method == "POST":  # guard: people-origin
                    check_same_origin(request)
                async with self.slot_pool.hold(request.path_params["tenant"]):
                    return await response(request)
            except GatewayError as error:
                note_refusal(self.tenants.refusals, request.scope.get("caller"), error, target=request.url.path)
                return refuse(error, headers=PAGE_HEADERS)

        return run

    async def visit(self, request: Request) -> PageVisit:
        """Return the tenant of a request, and its session if the browser has one.

        Raises:
            NotFound: there is no such tenant, or it has no issuer at which people sign in.
        """
        slug, found = await self.tenants.find(request)
        if not sign_in_issuers(found):
            raise NotFound("There is no such page.")
        visit = PageVisit(request=request, slug=slug, found=found, base=self.tenants.origin_of(request), session=None)
        session = await self.sessions.find(slug, found, request.cookies, is_secure=visit.is_secure)
        if session is not None:
            request.scope["caller"] = principal_of(session)
        return replace(visit, session=session)

    def show(self, title: str, content: Markup, session: PersonSession | None = None) -> Response:
        """Return a page; with a session, its idle time restarts."""
        response = respond(page(title, content), headers=PAGE_HEADERS)
        if session is not None:
            response.headers.append("set-cookie", self.sessions.cookie_of(session))
        return response

    def require(self, visit: PageVisit, wanted: SignInRequest) -> Response:
        """Return the response that starts a sign-in; with several issuers, a page offers the choice.

        Raises:
            BadInput: the target is not a path of this tenant, or too long.
        """
        known = sign_in_issuers(visit.found)
        check_target(visit.slug, wanted.target)
        if wanted.issuer is None and len(known) > 1:
            return self.show("Sign in", _choices(visit.slug, known, wanted))
        chosen = wanted.issuer or known[0]
        url, pending = self._flow.begin(
            visit.found.tenant,
            chosen,
            redirect_uri=f"{visit.base}{quote(chosen.callback_path(visit.slug))}",
            target=wanted.target,
            scopes=wanted.scopes,
            is_forced=wanted.is_forced,
        )
        response = RedirectResponse(url, 303, headers=PAGE_HEADERS)
        self._keep(visit, response, pending)
        return response

    async def _open(self, request: Request) -> Response:
        """Redirect to the sign-in; if no target page is named, show the person who is signed in.

        Every sign-in form leads here, because it does not reveal whether a tenant exists or has an issuer.
        """
        try:
            visit = await self.visit(request)
        except NotFound as error:
            note_refusal(self.tenants.refusals, None, error, target=request.url.path)
            content = _NO_ACCOUNTS.format(slug=request.path_params["tenant"])
            return respond(page("Not possible", content), error=error, headers=PAGE_HEADERS)
        query, session = read_fields(request.url.query), visit.session
        named, target, is_forced = query.get("issuer"), query.get("next") or None, "again" in query
        issuer = next((each for each in sign_in_issuers(visit.found) if each.name == named), None)
        if session is None or named is not None or is_forced:
            wanted = target or f"/t/{visit.slug}/sign-in"
            return self.require(visit, SignInRequest(target=wanted, issuer=issuer, is_forced=is_forced))
        if target is not None:
            check_target(visit.slug, target)
            return RedirectResponse(target, 303, headers=PAGE_HEADERS)
        token = self.sessions.form_token(session, SIGN_OUT)
        content = _SIGNED_IN.format(slug=visit.slug, person=visible(session.person.principal), token=token)
        return self.show("Signed in", content, session)

    async def _handle_callback(self, request: Request) -> Response:
        """Complete a sign-in, and redirect the browser to its target with a new session."""
        visit = await self.visit(request)
        known, found = sign_in_issuers(visit.found), visit.found
        issuer = next((each for each in known if each.name == request.path_params["issuer"]), None)
        if issuer is None:
            raise NotFound("There is no such page.")
        query = read_fields(request.url.query, limit=20)
        answered = AuthorizationResponse(
            state=query.get("state", ""), code=query.get("code"), error=query.get("error"), issuer=query.get("iss")
        )
        pending = self._read(visit, answered.state)
        sign_in, person = await self._flow.finish(
            found.tenant, pending, issuer, answered, correlation_id=correlation_id_of(request.scope)
        )
        session = begin(visit.slug, found, sign_in, person, is_secure=visit.is_secure)
        if session is None or pending is None:
            raise SignInExpired("The issuer was changed during the sign-in; begin again.")
        response = RedirectResponse(pending.target, 303, headers=PAGE_HEADERS)
        for cookie in (self.sessions.cookie_of(session), *self._pending.ended(pending.terms.state[:_SUFFIX])):
            response.headers.append("set-cookie", cookie)
        return response

    async def _sign_out(self, request: Request) -> Response:
        visit = await self.visit(request)
        form, session = await read_form(request), visit.session
        response = self.show("Signed out", _SIGNED_OUT.format(slug=visit.slug))
        if session is not None:
            self.sessions.check_form(session, SIGN_OUT, form)
            for cookie in await self.sessions.end(session):
                response.headers.append("set-cookie", cookie)
        return response

    def _keep(self, visit: PageVisit, response: Response, pending: PendingSignIn) -> None:
        """Set the cookie of a pending sign-in, and delete the oldest such cookies above the limit."""
        kept = self._pending.suffixes(visit.request.cookies)
        for suffix in kept[: max(0, len(kept) - MAX_PENDING + 1)]:  # guard: sign-in-cookies-bounded
            for cookie in self._pending.ended(suffix):
                response.headers.append("set-cookie", cookie)
        value, suffix = msgspec.msgpack.encode(pending), pending.terms.state[:_SUFFIX]
        cookie = self._pending.write(value, is_secure=visit.is_secure, suffix=suffix)
        if len(cookie.partition(";")[0]) > MAX_COOKIE_BYTES:
            raise BadInput("the request is too long for a sign-in; the client has to send a shorter one")
        response.headers.append("set-cookie", cookie)

    def _read(self, visit: PageVisit, state: str) -> PendingSignIn | None:
        sealed = self._pending.read(visit.request.cookies, state[:_SUFFIX])
        if sealed is None or sealed[1] is not visit.is_secure:
            return None
        try:
            return msgspec.msgpack.decode(sealed[0], type=PendingSignIn)
        except msgspec.MsgspecError:
            return None


def check_target(slug: str, target: str) -> None:
    """Refuse a target outside of the tenant's pages, to prevent open redirects.

    Raises:
        BadInput: the target is not a path of this tenant.
    """
    found = _TARGET.fullmatch(target)
    if found is None or found["slug"] != slug or ".." in found["path"]:  # guard: sign-in-target
        raise BadInput("the page after the sign-in must belong to this tenant")


def _choices(slug: str, issuers: Sequence[Issuer], wanted: SignInRequest) -> Markup:
    again = {"again": "1"} if wanted.is_forced else {}
    links = [
        _LINK.format(slug=slug, query=urlencode({"issuer": each.name, "next": wanted.target, **again}), name=each.name)
        for each in issuers
    ]
    return _CHOICE.format(slug=slug, links=Markup("").join(links))
