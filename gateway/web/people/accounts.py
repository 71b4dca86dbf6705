"""Pages on which users connect their accounts at upstreams: `/t/{tenant}/connect`, and one page per credential.

A user is a person who signed in at the tenant's provider, or the holder of a key. A link from a tool call contains a
keyed digest of its user; the page refuses other users. Without a session, the page is the same for every tenant.
"""

import hmac
from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from gateway.catalog.identity.accounts import disconnect_own, list_connectable, open_client
from gateway.catalog.transaction import CatalogContext
from gateway.domain.audit import RuleKind
from gateway.domain.refusals import SignInExpired
from gateway.errors import BadInput, DecidingRule, Forbidden, GatewayError, LimitExceeded, NotFound, Unauthenticated
from gateway.identity.oauth.account_flow import AccountFlow, PendingAccount
from gateway.identity.oauth.limits import PENDING_S
from gateway.identity.oauth.sign_in import AuthorizationResponse
from gateway.web.authentication import address_of
from gateway.web.console.sessions import ConsoleSessions
from gateway.web.html.documents import page, respond, visible
from gateway.web.html.forms import FORM, read_fields, read_form
from gateway.web.html.sealed_cookies import SealedCookies
from gateway.web.people import account_pages as html
from gateway.web.people.limits import MAX_CALLBACK_PARAMETERS, MAX_PENDING
from gateway.web.people.sign_in import PAGE_HEADERS, SignInPages, check_target
from gateway.web.people.user_sessions import Session, UserSessions
from gateway.web.problems import correlation_id_of

PENDING_ACCOUNT_PURPOSE = "pending accounts"
_PURPOSE = "accounts"
_SUFFIX = 8


class AccountPages:
    """The account pages; `keys` encrypt the cookies of pending connections."""

    def __init__(
        self,
        catalog: CatalogContext,
        pages: SignInPages,
        key_sessions: ConsoleSessions,
        flow: AccountFlow,
        *,
        keys: tuple[bytes, ...],
    ) -> None:
        self._catalog = catalog
        self._pages = pages
        self._key_sessions = key_sessions
        self._sessions = UserSessions(pages.sessions, key_sessions)
        self._flow = flow
        self._pending = SealedCookies(keys, "gateway-account", life_s=PENDING_S, same_site="Lax")

    @property
    def routes(self) -> list[Route]:
        """The routes of all pages."""
        path, guarded = "/t/{tenant}/connect", self._pages.guarded
        return [
            Route(path, guarded(self._list), methods=["GET"]),
            Route(f"{path}/sign-in", guarded(self._sign_in), methods=["POST"]),
            Route(f"{path}/{{name}}/account", guarded(self._show), methods=["GET"]),
            Route(f"{path}/{{name}}/begin", guarded(self._begin), methods=["GET"]),
            Route(f"{path}/{{name}}/callback", guarded(self._handle_callback), methods=["GET"]),
            Route(f"{path}/{{name}}/disconnect", guarded(self._disconnect), methods=["POST"]),
        ]

    async def table_for(self, user: Session) -> Markup:
        """Return the table of the accounts of a session's user, with forms that disconnect them."""
        found = await list_connectable(self._catalog, user.owner)
        return html.account_table(user.slug, found, token=self._token(user))

    async def _list(self, request: Request) -> Response:
        """Show the user's accounts, and the credentials for which an account can be connected."""
        user = await self._find(request)
        if user is None:
            return self._ask(request)
        content = html.account_list(user.slug, user.owner, await self.table_for(user))
        return self._page("Your accounts", content, user)

    async def _show(self, request: Request) -> Response:
        """Show one credential, with the user's account if there is one."""
        user = await self._find(request)
        if user is None:
            return self._ask(request)
        name, query = _path_parameter(request, "name"), read_fields(request.url.query)
        found = [each for each in await list_connectable(self._catalog, user.owner) if each[0].name == name]
        if not found:
            raise NotFound("There is no such page.")
        credential, account = found[0]
        expected = self._flow.links.tag(user.owner.tenant, user.owner.id, credential.id)
        meant = query.get("for", expected)
        if not hmac.compare_digest(meant.encode(), expected.encode()):  # guard: account-link-owner
            subject = visible(user.owner.subject)
            message = f"This link was made for another user. You are {subject}; nothing was connected."
            raise Forbidden(message, rule=DecidingRule(RuleKind.OWNER))
        content = html.account_content(user.slug, credential, account, user.owner, token=self._token(user))
        return self._page("Connect an account", content, user)

    async def _begin(self, request: Request) -> Response:
        """Redirect the browser to the upstream's authorization server; the form must belong to this session."""
        user, query = await self._require(request), read_fields(request.url.query)
        self._check(user, query)
        named = await open_client(user.owner.tenant, self._catalog, _path_parameter(request, "name"))
        url, pending = self._flow.begin(user.owner, user.slug, named)
        response = RedirectResponse(url, 303, headers=PAGE_HEADERS)
        kept = self._pending.suffixes(request.cookies)
        for suffix in kept[: max(0, len(kept) - MAX_PENDING + 1)]:  # guard: account-cookies-bounded
            for cookie in self._pending.ended(suffix):
                response.headers.append("set-cookie", cookie)
        value, suffix = msgspec.msgpack.encode(pending), pending.state[:_SUFFIX]
        cookie = self._pending.write(value, is_secure=self._is_secure(request), suffix=suffix)
        response.headers.append("set-cookie", cookie)
        return response

    async def _handle_callback(self, request: Request) -> Response:
        """Complete a connection that this browser started."""
        user, query = await self._find(request), read_fields(request.url.query, limit=MAX_CALLBACK_PARAMETERS)
        if user is None:
            raise SignInExpired("You are no longer signed in, so nothing was connected; sign in and begin again.")
        answered = AuthorizationResponse(
            state=query.get("state", ""), code=query.get("code"), error=query.get("error"), issuer=query.get("iss")
        )
        pending = self._read(request, answered.state)
        account = await self._flow.finish(
            user.owner,
            _path_parameter(request, "name"),
            pending,
            answered,
            correlation_id=correlation_id_of(request.scope),
        )
        response = self._page("Connected", html.connected_content(user.slug, account), user)
        for cookie in self._pending.ended(answered.state[:_SUFFIX]):
            response.headers.append("set-cookie", cookie)
        return response

    async def _disconnect(self, request: Request) -> Response:
        """Delete the account of the user, and revoke its tokens at the upstream if possible."""
        user, form = await self._require(request), await read_form(request)
        self._check(user, form)
        name = _path_parameter(request, "name")
        await disconnect_own(self._catalog, user.owner, name, correlation_id=correlation_id_of(request.scope))
        return RedirectResponse(f"/t/{user.slug}/connect", 303, headers=PAGE_HEADERS)

    async def _sign_in(self, request: Request) -> Response:
        """Start a session for the holder of a key."""
        form, slug = await read_form(request), _path_parameter(request, "tenant")
        target = form.get("next", "")
        check_target(slug, target)
        try:
            session = await self._key_sessions.begin(
                form.get("key", "").strip(), address=address_of(request.scope), is_secure=self._is_secure(request)
            )
            if session.principal.slug != slug:  # guard: account-key-tenant
                raise Unauthenticated("the key belongs to another tenant")
        except Unauthenticated as error:
            return self._ask(request, target=target, text="This key is not valid.", error=error)
        except (Forbidden, LimitExceeded) as error:
            return self._ask(request, target=target, text=error.message, error=error)
        response = RedirectResponse(target, 303, headers=PAGE_HEADERS)
        response.headers.append("set-cookie", self._key_sessions.cookie_of(session))
        return response

    async def _find(self, request: Request) -> Session | None:
        """Return the user who is signed in to this tenant; None without a session."""
        slug = _path_parameter(request, "tenant")
        held = await self._key_sessions.find(request.cookies)
        if held is not None and held.is_secure is self._is_secure(request) and held.principal.slug == slug:
            request.scope["caller"] = held.principal
            return held
        if not self._pages.sessions.has_cookie(slug, request.cookies):
            return None  # no database access without a session cookie
        try:
            visit = await self._pages.visit(request)
        except NotFound:
            return None
        return None if visit.session is None else visit.session

    async def _require(self, request: Request) -> Session:
        user = await self._find(request)
        if user is None:
            raise Forbidden("sign in first: open the page again")
        return user

    def _token(self, user: Session) -> str:
        return self._sessions.form_token(user, _PURPOSE)

    def _check(self, user: Session, form: Mapping[str, str]) -> None:
        """Refuse a form whose CSRF token is not of this session."""
        if not hmac.compare_digest(self._token(user).encode(), form.get("token", "").encode()):  # guard: account-form
            raise Forbidden("the form is not of this session; open the page again", rule=FORM)

    def _ask(
        self, request: Request, *, target: str = "", text: str = "", error: GatewayError | None = None
    ) -> Response:
        """Return the sign-in page, which is the same for every tenant, existing or not."""
        slug = _path_parameter(request, "tenant")
        place = target or request.url.path + (f"?{request.url.query}" if request.url.query else "")
        try:
            check_target(slug, place)
        except BadInput:
            place = f"/t/{slug}/connect"
            check_target(slug, place)
        content = html.sign_in_choice(slug, place, again=quote(place, safe=""), text=text)
        return respond(page("Sign in", content), error=error, headers=PAGE_HEADERS)

    def _page(self, title: str, content: Markup, user: Session) -> Response:
        response = respond(page(title, content), headers=PAGE_HEADERS)
        response.headers.append("set-cookie", self._sessions.cookie_of(user))
        return response

    def _read(self, request: Request, state: str) -> PendingAccount | None:
        sealed = self._pending.read(request.cookies, state[:_SUFFIX])
        if sealed is None or sealed[1] is not self._is_secure(request):
            return None
        try:
            return msgspec.msgpack.decode(sealed[0], type=PendingAccount)
        except msgspec.MsgspecError:
            return None

    def _is_secure(self, request: Request) -> bool:
        return self._pages.tenants.origin_of(request).startswith("https://")


def _path_parameter(request: Request, name: str) -> str:
    """Return a path parameter; refuse NUL, which PostgreSQL cannot store."""
    found = str(request.path_params[name])
    if not found.isprintable():
        raise NotFound("There is no such page.")
    return found
