"""The credentials that the operations of a document need, and the ways to give them, for the report of an import.

The ways are options of the command line. Names, URLs and scopes are those of the document, so a shell must not read
them: they are quoted.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from shlex import quote
from urllib.parse import urlsplit

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.json_access import Object
from gateway.domain.updates.import_reports import CredentialNeed
from gateway.openapi.document.json_access import NOTHING, clean_text, object_at, text_at
from gateway.openapi.operation.limits import MAX_SHOWN_SCOPES, MAX_SHOWN_URL_LENGTH

_KEY = "one key for all callers: --credential {name}=KEY"
_ONE_FOR_ALL = "one token for all callers: --credential {name}=TOKEN"
_WAYS = {
    SchemeKind.BASIC: "one user name and password for all callers: --login {name}=USER:PASSWORD",
    SchemeKind.BEARER: _ONE_FOR_ALL,
    SchemeKind.HTTP: _ONE_FOR_ALL,
    SchemeKind.CLIENT_CREDENTIALS: "client id and secret, to request tokens with: --login {name}=ID:SECRET",
}
_ACCOUNT = (
    "each user's own account: gateway credential create --name NAME --kind user --client-id ID {options}, "
    "then --credential {name}=credential:NAME"
)
_FLOWS = ("authorizationCode", "implicit")
_DISCOVERY = "/.well-known/openid-configuration"
_SCOPE = re.compile(r"[!#-\[\]-~]{1,200}")


class CredentialNeeds:
    """The needs of one document: for each choice of schemes, the number of operations that have it."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[tuple[str, ...], ...]] = Counter()
        self._kinds: dict[str, SchemeKind] = {}

    def add(self, alternatives: Sequence[tuple[SchemePlan, ...]]) -> None:
        """Count an operation, unless it can be called without a credential."""
        if not alternatives or not all(alternatives):
            return
        for plan in (plan for plans in alternatives for plan in plans):
            self._kinds.setdefault(plan.name, plan.kind)
        choice = (tuple(sorted({plan.name for plan in plans})) for plans in alternatives)
        self._counts[tuple(dict.fromkeys(choice))] += 1

    def needs(self) -> tuple[CredentialNeed, ...]:
        """Return the choices, the most frequent first."""
        return tuple(
            CredentialNeed(alternatives=alternatives, operations=operations)
            for alternatives, operations in self._counts.most_common()
        )

    def ways(self, accounts: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
        """Return the ways to give a credential for each scheme; `accounts` are those of `Schemes`."""
        return {name: tuple(_ways(name, kind, accounts.get(name))) for name, kind in self._kinds.items()}


def account_options(scheme: Object) -> str:
    """Return the options of `gateway credential create` for accounts of users of an OAuth or OpenID Connect scheme."""
    issuer = _url(text_at(scheme, "openIdConnectUrl"))
    if issuer is not None and issuer.endswith(_DISCOVERY):
        return f"--server {_shell_word(issuer.removesuffix(_DISCOVERY))}"
    flows = object_at(scheme, "flows")
    flow = next((found for name in _FLOWS if (found := object_at(flows, name))), NOTHING)
    authorization, token = _url(text_at(flow, "authorizationUrl")), _url(text_at(flow, "tokenUrl"))
    urls = ["URL" if url is None else _shell_word(url) for url in (authorization, token)]
    server = "--authorization-url {} --token-url {}".format(*urls)
    scopes = [scope for scope in object_at(flow, "scopes") if _SCOPE.fullmatch(scope)]
    return " ".join([server, *(f"--scope {_shell_word(scope)}" for scope in scopes[:MAX_SHOWN_SCOPES])])


def _url(text: str | None) -> str | None:
    """The URL; None if it is not absolute or too long."""
    if text is None or len(text) > MAX_SHOWN_URL_LENGTH:
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in {"https", "http"} and parts.netloc else None


def _shell_word(text: str) -> str:
    """Text of the document as one word of a command that an administrator may paste into a shell."""
    return quote(clean_text(text))  # guard: quoted-ways


def _ways(name: str, kind: SchemeKind, account: str | None) -> Sequence[str]:
    shown = _shell_word(name)
    for_all = _WAYS.get(kind, _KEY).format(name=shown)
    return [for_all] if account is None else [for_all, _ACCOUNT.format(options=account, name=shown)]
