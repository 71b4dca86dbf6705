"""HTML of the consent page: the attributes of an application, and the access that it requests.

The application's name is not verified. The host of its id and the destination of the code identify it.
"""

from urllib.parse import urlsplit

from markupsafe import Markup

from gateway.domain.tenancy.grants import ClientKind, OAuthClient
from gateway.domain.tenancy.redirect_uris import host_of, is_native
from gateway.domain.text_search.look_alikes import has_mixed_letters
from gateway.handlers.previews.requests import truncate
from gateway.identity.oauth.requests import AuthorizationRequest
from gateway.web.html.documents import visible
from gateway.web.people.limits import MAX_SHOWN_NAME_LENGTH
from gateway.web.people.sessions import PersonSession

_CONSENT = Markup("""<p>An application wants to use the tenant <strong>{slug}</strong> as
<strong><bdi>{person}</bdi></strong>. It calls itself <q><bdi>{name}</bdi></q>.</p>
{warnings}
<dl>{facts}</dl>
<p>Allow this only if you have just started it yourself, in an application that you trust.</p>
<form method="post" action="/t/{slug}/oauth/consent">
<input type="hidden" name="token" value="{token}">
<input type="hidden" name="request" value="{request}">
<p><button name="choice" value="allow">Allow</button>
<button name="choice" value="deny">Do not allow</button></p>
</form>
<p>Not <bdi>{person}</bdi>? <a href="{again}">Sign in as another person</a></p>""")
_DETAIL = Markup("<dt>{}</dt><dd><bdi>{}</bdi></dd>\n")
_WARNING = Markup("<li>{}</li>\n")
_WARNINGS = Markup('<section aria-labelledby="warnings"><h2 id="warnings">Before you allow</h2>\n<ul>{}</ul></section>')
_BACK_LINK = Markup("""<p role="alert">{reason}</p>
<p><a href="{uri}">Back to the application</a> (<bdi>{host}</bdi>)</p>""")
_IDENTIFIED = {
    ClientKind.REGISTERED: "the administrator of the tenant, who registered it",
    ClientKind.DYNAMIC: "nothing: it registered itself",
}


def consent_content(
    session: PersonSession, client: OAuthClient, asked: AuthorizationRequest, *, token: str, request: str, again: str
) -> Markup:
    """Return the content of the page, with the consent form."""
    warnings = Markup("").join(_WARNING.format(text) for text in _warnings(client, asked))
    return _CONSENT.format(
        slug=session.slug,
        person=visible(session.person.principal),
        name=visible(truncate(client.name, MAX_SHOWN_NAME_LENGTH)),  # guard: consent-name-length
        warnings=_WARNINGS.format(warnings) if warnings else "",
        facts=Markup("").join(_DETAIL.format(*detail) for detail in _details(session, client, asked)),
        token=token,
        request=request,
        again=again,
    )


def back_content(reason: str, redirect_uri: str, uri: str) -> Markup:
    """Return the content of a page with a link back to the application, instead of a redirect."""
    return _BACK_LINK.format(reason=reason, uri=uri, host=visible(host_of(redirect_uri)))


def _details(session: PersonSession, client: OAuthClient, asked: AuthorizationRequest) -> list[tuple[str, str]]:
    terms, scopes = session.issuer.sign_in, ", ".join(asked.scopes)
    days = 0 if terms is None else terms.grant_max_s // 86_400
    return [
        ("Identified by", visible(_IDENTIFIED.get(client.status.kind) or urlsplit(client.id).netloc)),
        ("Its id", visible(client.id)),
        ("Sends you back to", visible(_destination(asked.redirect_uri))),
        ("Profile", visible(asked.profile)),
        ("Address", visible(asked.resource)),
        ("It may", "use the tools, resources and prompts of this profile as you"),
        *([("Scopes", visible(scopes))] if scopes else []),
        ("Until", f"you or an administrator revoke it, at most {max(1, days)} days"),
    ]


def _destination(redirect_uri: str) -> str:
    host = host_of(redirect_uri)
    scheme = urlsplit(redirect_uri).scheme
    if scheme == "http":
        return f"a program on this computer ({host})"
    return host if scheme == "https" else f"the application on this computer that opens {host} links"


def _warnings(client: OAuthClient, asked: AuthorizationRequest) -> list[str]:
    found: list[str] = []
    destination = host_of(asked.redirect_uri)
    if client.status.kind is ClientKind.DYNAMIC:
        found.append("The application registered itself, and its name was not checked.")
    if client.status.kind is ClientKind.DOCUMENT and not is_native(asked.redirect_uri):
        host = urlsplit(client.id).netloc
        if destination != host:  # guard: consent-other-host
            found.append(f"The application is that of {host}, and sends you to another host: {destination}.")
    if is_native(asked.redirect_uri):
        found.append("The application claims to run on this computer, as every program on it can.")
    if has_mixed_letters(client.name):  # guard: consent-name-alike
        found.append("Its name has letters that can look like others.")
    if not destination.isascii() or "xn--" in destination or "xn--" in client.id:
        found.append("The name of a host has letters that can look like others.")
    return found
