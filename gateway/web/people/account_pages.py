"""HTML of the account pages: sign-in, list of accounts, one credential, and completed connection."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from markupsafe import Markup

from gateway.domain.credentials import AccountTerms, StoredCredential
from gateway.domain.tenancy.accounts import AccountOwner, AccountState, UserAccount
from gateway.web.html.documents import alert, moment, visible

_SIGN_IN = Markup("""{alert}<p>Sign in to connect your accounts for the tenant <strong>{slug}</strong>.</p>
<p><a href="/t/{slug}/sign-in?next={again}">Sign in at your organisation</a></p>
<form method="post" action="/t/{slug}/connect/sign-in">
<input type="hidden" name="next" value="{next}">
<p><label for="key">Or with the key that your MCP client uses</label><br>
<input id="key" name="key" type="password" autocomplete="off" required aria-describedby="about"></p>
<p id="about">The key is sent to this gateway only.</p>
<p><button>Sign in with the key</button></p>
</form>""")
_LIST = Markup("""<p>You are signed in to the tenant <strong>{slug}</strong> as
<strong><bdi>{subject}</bdi></strong>.</p>
{rows}""")
_TABLE = Markup("""<table aria-label="Your accounts"><thead><tr><th scope="col">Name</th><th scope="col">Server</th>
<th scope="col">Account</th><th scope="col">Disconnect</th></tr></thead>
<tbody>{rows}</tbody></table>""")
_ROW = Markup("""<tr><th scope="row"><a href="/t/{slug}/connect/{name}/account">{name}</a></th>
<td><bdi>{host}</bdi></td><td>{state}</td><td>{disconnect}</td></tr>
""")
_NONE = Markup("<p>No upstream of this tenant uses accounts of its users.</p>")
_ACCOUNT = Markup("""<p>Tools of the tenant <strong>{slug}</strong> can act with your own account.
You are signed in as <strong><bdi>{subject}</bdi></strong>.</p>
<dl>
<dt>Name</dt><dd>{name}</dd>
<dt>Server on which you permit it</dt><dd><bdi>{host}</bdi></dd>
<dt>Permissions that are requested</dt><dd><bdi>{scopes}</bdi></dd>
<dt>Sent with your account to</dt><dd><bdi>{origins}</bdi></dd>
<dt>State</dt><dd>{state}</dd>
</dl>
<p>Connect an account only if you have just used this gateway, or have opened this page yourself.</p>
<p><a href="/t/{slug}/connect/{name}/begin?token={token}">{verb} at <bdi>{host}</bdi></a></p>
{disconnect}
<p><a href="/t/{slug}/connect">All accounts</a></p>""")
_DISCONNECT = Markup("""<form method="post" action="/t/{slug}/connect/{name}/disconnect">
<input type="hidden" name="token" value="{token}">
<p><button aria-label="Disconnect {name}">Disconnect</button></p>
</form>""")
_CONNECTED = Markup("""<p role="status">Your account is connected for <strong>{name}</strong>.</p>
<p>Go back to your application; it can repeat the call now. You can close this page.</p>
<p><a href="/t/{slug}/connect">All accounts</a></p>""")
_STATES = {None: "not connected", AccountState.CONNECTED: "connected", AccountState.REFUSED: "to be connected again"}


def sign_in_choice(slug: str, target: str, *, again: str, text: str = "") -> Markup:
    """Return the sign-in page's content: sign-in at the tenant's provider or with a key."""
    return _SIGN_IN.format(alert=alert(text), slug=slug, next=target, again=again)


def account_list(slug: str, owner: AccountOwner, table: Markup) -> Markup:
    """Return the content of the page that lists a user's accounts."""
    return _LIST.format(slug=slug, subject=visible(owner.subject), rows=table)


def account_table(slug: str, found: Sequence[tuple[StoredCredential, UserAccount | None]], *, token: str) -> Markup:
    """Return the table of a user's accounts; each connected one has a form with this token that disconnects it."""
    rows = [
        _ROW.format(
            slug=slug,
            name=credential.name,
            host=_host(credential),
            state=_state(account),
            disconnect=_disconnect(slug, credential, account, token),
        )
        for credential, account in found
    ]
    return _TABLE.format(rows=Markup("").join(rows)) if rows else _NONE


def account_content(
    slug: str, credential: StoredCredential, account: UserAccount | None, owner: AccountOwner, *, token: str
) -> Markup:
    """Return the content of the page of one credential."""
    terms = credential.delegation
    scopes = " ".join(terms.scopes) if isinstance(terms, AccountTerms) else ""
    return _ACCOUNT.format(
        slug=slug,
        subject=visible(owner.subject),
        name=credential.name,
        host=_host(credential),
        scopes=visible(scopes or "those that the server grants by default"),
        origins=visible(", ".join(credential.origins)),
        state=_state(account),
        verb="Connect" if account is None else "Connect again",
        token=token,
        disconnect=_disconnect(slug, credential, account, token),
    )


def connected_content(slug: str, account: UserAccount) -> Markup:
    """Return the content of the page after a completed connection."""
    return _CONNECTED.format(slug=slug, name=account.credential_name)


def _disconnect(slug: str, credential: StoredCredential, account: UserAccount | None, token: str) -> Markup:
    return Markup("") if account is None else _DISCONNECT.format(slug=slug, name=credential.name, token=token)


def _state(account: UserAccount | None) -> Markup:
    text = Markup.escape(_STATES[None if account is None else account.state])
    return text if account is None else Markup("{}, since {}").format(text, moment(account.created_at))


def _host(credential: StoredCredential) -> str:
    terms = credential.delegation
    url = terms.authorization_url if isinstance(terms, AccountTerms) else ""
    return visible(urlsplit(url).netloc)
