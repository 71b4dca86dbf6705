"""HTML of the tenant page: sign-in, profiles, client setup, accounts, and consents."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup

from gateway.domain.tenancy.access import Role
from gateway.domain.tenancy.client_setup import ClientTarget, clients_for
from gateway.domain.tenancy.grants import Consent
from gateway.domain.tenancy.profiles import Profile
from gateway.web.html.documents import alert, moment, visible

_SIGN_IN = Markup("""{alert}<section aria-labelledby="account"><h2 id="account">With your account</h2>
<p><a href="/t/{slug}/sign-in?next=/t/{slug}/">Sign in with your account</a></p></section>
<section aria-labelledby="by-key"><h2 id="by-key">With a key</h2>
<form method="post" action="/t/{slug}/">
<p><label for="key">Key with the scope <code>mcp</code></label><br>
<input id="key" name="key" type="password" autocomplete="current-password" required aria-describedby="about">
</p>
<p id="about">The key is sent to this gateway only. You stay signed in for at most eight hours.</p>
<p><button>Sign in with the key</button></p>
</form></section>
<p><a href="/t/{slug}/">I have signed in already</a></p>""")
_VISITOR = Markup("""<form method="post" action="{action}">
<input type="hidden" name="token" value="{token}">
<p>Tenant <strong>{slug}</strong>, signed in as <strong><bdi>{subject}</bdi></strong>. <button>Sign out</button></p>
</form>""")
_APPROVALS = Markup("""
<p><a href="/t/{slug}/approvals">Calls that wait for your decision</a></p>""")
_SECTION = Markup("""<section aria-labelledby="{id}"><h2 id="{id}">{title}</h2>
{content}</section>""")
_TABLE = Markup("""<table aria-labelledby="{id}"><thead><tr>{heads}</tr></thead>
<tbody>{rows}</tbody></table>""")
_HEAD = Markup('<th scope="col">{}</th>')
_PROFILE = Markup("""<tr><th scope="row"><a href="/t/{slug}/?profile={query}"{current}><bdi>{name}</bdi></a></th>
<td><bdi>{description}</bdi></td></tr>
""")
_CURRENT = Markup(' aria-current="true"')
_URL = Markup("""<p>The MCP URL of the profile <strong><bdi>{profile}</bdi></strong>:</p>
<pre>{url}</pre>
<p>{about}</p>""")
_BY_SIGN_IN = "The client opens this gateway in your browser, where you allow it; curl needs an access token of yours."
_BY_KEY = (
    "Replace YOUR-KEY with your key. Clients that connect by sign-in only, such as Claude and ChatGPT, are left out."
)
_NOT_REGISTERED = (
    "This tenant does not permit clients to register themselves. Those that need it cannot sign in until its"
    " administrator runs: gateway --tenant {slug} issuer update {issuer} --registration"
)
_NEEDS_REGISTRATION = "needs registration, which is not permitted"
_CLIENT = Markup("""<tr><th scope="row">{name}</th><td>{place}</td><td><pre>{line}</pre></td>{then}</tr>
""")
_NOTE = Markup("<p>{}</p>")
_THEN = Markup("<td>{}</td>")
_CONSENT = Markup("""<tr><th scope="row"><bdi>{name}</bdi></th><td><bdi>{id}</bdi></td><td><bdi>{host}</bdi></td>
<td><bdi>{resource}</bdi></td><td>{given}</td>
<td><form method="post" action="{action}"><input type="hidden" name="token" value="{token}">
<input type="hidden" name="consent" value="{consent}">
<button aria-label="Revoke {name}">Revoke</button></form></td></tr>
""")
_REVOKED = Markup('<p role="status">The client is revoked: its tokens are refused.</p>\n')


@dataclass(frozen=True, slots=True, kw_only=True)
class PageForms:
    """The action path of the page's forms, and their CSRF token."""

    action: str
    token: str


def sign_in_content(slug: str, *, text: str = "") -> Markup:
    """Return the content without a session: the sign-in choices."""
    return _SIGN_IN.format(slug=slug, alert=alert(text))


def visitor_content(slug: str, subject: str, form: PageForms) -> Markup:
    """Return the name of the signed-in person, and the sign-out button."""
    return _VISITOR.format(slug=slug, subject=visible(subject), action=form.action, token=form.token)


def roles_content(slug: str, roles: Collection[Role]) -> Markup:
    """Return links to the pages that the roles of the person give access to."""
    return _APPROVALS.format(slug=slug) if Role.APPROVE in roles else Markup("")


def profiles_content(slug: str, profiles: Sequence[Profile], chosen: str) -> Markup:
    """Return the table of profiles; `chosen` is the selected one."""
    if not profiles:
        return _section("profiles", "Profiles", Markup("<p>You may use no profile of this tenant.</p>"))
    rows = [
        _PROFILE.format(
            slug=slug,
            query=quote(profile.name, safe=""),
            current=_CURRENT if profile.name == chosen else "",
            name=visible(profile.name),
            description=visible(profile.description),
        )
        for profile in profiles
    ]
    return _section("profiles", "Profiles", _table("profiles", ("Profile", "Description"), rows))


def registration_note(slug: str, issuer: str) -> str:
    """Return what the administrator has to do for clients that register themselves."""
    return _NOT_REGISTERED.format(slug=slug, issuer=issuer)


def clients_content(target: ClientTarget, profile: str, *, note: str = "") -> Markup:
    """Return the setup instructions of each client for a profile.

    With a `note`, clients that register themselves are marked; it has the reason.
    """
    is_by_key = target.key is not None
    rows = [
        _CLIENT.format(
            name=each.name,
            place=each.place,
            line=each.write(target),
            then="" if is_by_key else _THEN.format(_NEEDS_REGISTRATION if note and each.registers else each.then),
        )
        for each in clients_for(target)
    ]
    heads = ("Client", "Where", "Text", *(() if is_by_key else ("Then, to sign in",)))
    about = _URL.format(profile=visible(profile), url=target.url, about=_BY_KEY if is_by_key else _BY_SIGN_IN)
    about += _NOTE.format(note) if note else ""
    return _section("clients", "Clients", about + _table("clients", heads, rows))


def accounts_content(table: Markup) -> Markup:
    """Return the section of the user's accounts at upstreams."""
    return _section("services", "Your accounts at other services", table)


def consents_content(consents: Sequence[Consent], form: PageForms, *, is_revoked: bool) -> Markup:
    """Return the table of consents, each with a button that revokes the consent."""
    status = _REVOKED if is_revoked else Markup("")
    if not consents:
        return _section("consents", "Clients you allowed", status + Markup("<p>None.</p>"))
    rows = [
        _CONSENT.format(
            name=visible(consent.client_name),
            id=visible(consent.client),
            host=visible(consent.redirect_host),
            resource=visible(consent.resource),
            given=moment(consent.created_at),
            action=form.action,
            token=form.token,
            consent=consent.id,
        )
        for consent in consents
    ]
    heads = ("Client, as it calls itself", "Its id", "Sends you to", "Address", "Allowed", "Revoke")
    return _section("consents", "Clients you allowed", status + _table("consents", heads, rows))


def _section(name: str, title: str, content: Markup) -> Markup:
    return _SECTION.format(id=name, title=title, content=content)


def _table(name: str, heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    head = Markup("").join(_HEAD.format(each) for each in heads)
    return _TABLE.format(id=name, heads=head, rows=Markup("").join(rows))
