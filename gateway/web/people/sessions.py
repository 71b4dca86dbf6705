"""Browser sessions of people who signed in at their tenant's provider: one encrypted cookie per tenant.

The cookie contains the id of a stored sign-in and the version of its person. It expires an hour after the last request
and eight hours after the sign-in. A session also ends when the person signs out or is denied, and when the issuer is
changed. The cookie is `SameSite=Lax`, because clients open the pages from other sites; forms contain a CSRF token.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.catalog.identity.sign_ins import end_session, find_session
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import SignInId, TenantId
from gateway.domain.tenancy.accounts import AccountOwner
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.sign_ins import SignedInPerson, SignIn
from gateway.errors import Forbidden
from gateway.web.html.forms import FORM
from gateway.web.html.limits import IDLE_S
from gateway.web.html.sealed_cookies import SealedCookies

SESSION_PURPOSE = "people sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSession(SignedInPerson):
    """A browser session of a person; `slug` is the tenant's."""

    tenant: TenantId
    slug: str
    is_secure: bool

    @property
    def owner(self) -> AccountOwner:
        """The person as the owner of accounts at upstreams."""
        person = self.person
        return AccountOwner(
            tenant=person.tenant, id=person.id, subject=person.principal, name=f"user:{person.principal}"
        )

    @property
    def sign_out_path(self) -> str:
        """The path of the form that ends the session."""
        return f"/t/{self.slug}/sign-out"

    def admits(self, profile: str) -> bool:
        """True if a rule of the issuer admits the person to the profile."""
        return self.issuer.admits(self.sign_in.claims, profile)


class PersonSessions:
    """Reads, writes and ends sessions; `keys` encrypt their cookies."""

    def __init__(self, keys: Sequence[bytes], catalog: CatalogContext) -> None:
        self._cookies = SealedCookies(keys, "gateway-person", life_s=IDLE_S, same_site="Lax")
        self._forms = keys[0]
        self._catalog = catalog

    async def find(
        self, slug: str, found: TenantIssuers, cookies: Mapping[str, str], *, is_secure: bool
    ) -> PersonSession | None:
        """Return the session of a browser at a tenant; None if there is none.

        Raises:
            DatabaseUnavailable: the sign-in cannot be read now.
        """
        sealed = self._cookies.read(cookies, slug)
        if sealed is None or sealed[1] is not is_secure:  # guard: session-transport
            return None
        sign_in, version = sealed[0].decode().split(" ")
        stored = await find_session(found.tenant, self._catalog, SignInId(sign_in))
        if stored is None or str(stored[1].version) != version:  # guard: session-person-version
            return None
        return begin(slug, found, *stored, is_secure=is_secure)

    def has_cookie(self, slug: str, cookies: Mapping[str, str]) -> bool:
        """True if the browser sent a session cookie for a tenant; the cookie is not verified."""
        return self._cookies.read(cookies, slug) is not None

    def cookie_of(self, session: PersonSession) -> str:
        """Return the `Set-Cookie` header of a session; its idle time restarts."""
        value = f"{session.sign_in.id} {session.person.version}".encode()
        return self._cookies.write(value, is_secure=session.is_secure, suffix=session.slug)

    async def end(self, session: PersonSession) -> tuple[str, str]:
        """End a session; return the `Set-Cookie` headers that delete it in the browser."""
        await end_session(session.tenant, self._catalog, session.sign_in.id)
        return self._cookies.ended(session.slug)

    def form_token(self, session: PersonSession, purpose: str) -> str:
        """Return the CSRF token of a session for forms of one purpose."""
        text = f"form {session.sign_in.id} {purpose}"
        return hmac.digest(self._forms, text.encode(), hashlib.sha256).hex()

    def check_form(self, session: PersonSession, purpose: str, form: Mapping[str, str]) -> None:
        """Refuse a form of another session or purpose.

        Raises:
            Forbidden: the field `token` is missing or different.
        """
        token, expected = form.get("token", ""), self.form_token(session, purpose)
        if not hmac.compare_digest(expected.encode(), token.encode()):  # guard: person-form-token
            raise Forbidden("the form is not of this session; open the page again", rule=FORM)


def begin(slug: str, found: TenantIssuers, sign_in: SignIn, person: Key, *, is_secure: bool) -> PersonSession | None:
    """Return the session of a sign-in; None if its issuer no longer signs people in, or does not admit the person."""
    issuer = next((each for each in found.issuers if each.id == sign_in.issuer), None)
    if issuer is None or issuer.sign_in is None:
        return None
    if not issuer.admits(sign_in.claims):  # guard: session-rules
        return None
    return PersonSession(
        tenant=found.tenant, slug=slug, issuer=issuer, sign_in=sign_in, person=person, is_secure=is_secure
    )


def principal_of(session: PersonSession) -> Principal:
    """Return a principal without scopes, as the author of actions on pages."""
    person = session.person
    return Principal(
        tenant=session.tenant,
        slug=session.slug,
        key=person.id,
        subject=person.principal,
        scopes=frozenset(),
        version=person.version,
        is_person=True,
        packed_groups=session.issuer.packed_groups(session.sign_in.claims),
    )
