"""The credentials of an operation: its security requirements as alternatives of usable schemes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urljoin

import msgspec

from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.json_access import Object, as_list, as_object
from gateway.domain.sources import FilledParameter
from gateway.openapi.document.json_access import Unusable, object_at, quote_text, text_at
from gateway.openapi.document.references import References, ref_tokens
from gateway.openapi.document.schema_ids import Identifiers
from gateway.openapi.operation.credential_headers import add_headers, fill_parameters, filled_header, header_scheme
from gateway.openapi.operation.credential_needs import account_options
from gateway.openapi.operation.paths import PathTemplate
from gateway.openapi.operation.servers import Server

_SCOPE = re.compile(r"[!#-\[\]-~]+")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEY_KINDS = {
    "header": SchemeKind.API_KEY_HEADER,
    "query": SchemeKind.API_KEY_QUERY,
    "cookie": SchemeKind.API_KEY_COOKIE,
}
_HTTP_KINDS = {"basic": SchemeKind.BASIC, "bearer": SchemeKind.BEARER}
_COMPUTED_SCHEMES = frozenset(
    ("digest", "dpop", "gnap", "hoba", "mutual", "negotiate", "ntlm", "oauth", "privatetoken", "vapid", "concealed")
)
"""HTTP schemes that compute a new credential for each request, which the gateway does not support."""
_FLOW = "clientCredentials"
_NO_HEADERS: Mapping[str, bool] = {}


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """One usable security scheme; `account` has the options of a credential with which users connect their accounts."""

    plan: SchemePlan
    account: str | None = None


class SecurityPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The alternatives of one operation, and the losses to report to the admin."""

    alternatives: tuple[tuple[SchemePlan, ...], ...] = ()
    losses: tuple[str, ...] = ()

    def filled(self, parameters: Sequence[FilledParameter], template: PathTemplate) -> "SecurityPlan":
        """Return the plan with the parameters that stored credentials of the source fill."""
        return msgspec.structs.replace(
            self, alternatives=tuple(fill_parameters(self.alternatives, parameters, template))
        )


class Schemes:
    """The usable security schemes of one document, and the reasons why other schemes cannot be used."""

    def __init__(self, root: Object, references: References, identifiers: Identifiers | None = None) -> None:
        """Given `identifiers`, requirements may also name schemes by URI (OpenAPI 3.2)."""
        self._root = root
        self._references = references
        self._identifiers = identifiers
        self._usable: dict[str, Scheme] = {}
        self._refused: dict[str, str] = {}
        self._default = root.get("security")
        for name, node in object_at(object_at(root, "components"), "securitySchemes").items():
            self._take(name, node)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the usable schemes, under which credentials can be stored."""
        return tuple(self._usable)

    @property
    def accounts(self) -> Mapping[str, str]:
        """The options of `credential create` for the schemes with which users connect their own accounts."""
        return {name: scheme.account for name, scheme in self._usable.items() if scheme.account is not None}

    def plan(self, operation: Object, server: Server, headers: Mapping[str, bool] = _NO_HEADERS) -> SecurityPlan:
        """Plan the alternatives of an operation at this server, from its own requirements or the document's.

        If every alternative has an unusable scheme, each is reduced to its usable schemes. `headers` are parameters
        that carry credentials, True for required ones; each is filled by an existing scheme, or by a new one of the
        same name.
        """
        found = self._required(operation, server)
        if not headers:
            return found
        schemes = {self._filling(name): is_required for name, is_required in headers.items()}
        return msgspec.structs.replace(found, alternatives=tuple(add_headers(found.alternatives, schemes)))

    def _filling(self, header: str) -> SchemePlan:
        known = (scheme.plan for scheme in self._usable.values() if filled_header(scheme.plan) == header.lower())
        plan = next(known, None)
        if plan is None:
            plan = header_scheme(header)
            self._usable[header] = Scheme(plan=plan)
        return plan

    def _required(self, operation: Object, server: Server) -> SecurityPlan:
        required = as_list(operation.get("security", self._default)) or ()
        read = [self._alternative(as_object(item), server) for item in required]
        whole = [usable for usable, refusals in read if not refusals]
        if whole or not required:
            plans = tuple(tuple(scheme.plan for scheme in alternative) for alternative in whole)
            return SecurityPlan(alternatives=plans)
        partial = [usable for usable, _ in read if usable]
        reasons = dict.fromkeys(reason for _, refusals in read for reason in refusals)
        what = "with a part of its credentials" if partial else "without a credential"
        losses = tuple(f"it is called {what}: {reason}" for reason in reasons)
        plans = tuple(tuple(scheme.plan for scheme in alternative) for alternative in partial)
        return SecurityPlan(alternatives=plans, losses=losses)

    def _alternative(self, requirement: Object | None, server: Server) -> tuple[tuple[Scheme, ...], list[str]]:
        """The usable schemes of one alternative, and the reasons why its other schemes cannot be used."""
        if requirement is None:
            return (), ["a security requirement is not an object"]
        named = {self._name(key): scopes for key, scopes in requirement.items()}
        refusals = [
            self._refused.get(name, f"the security scheme {quote_text(name)} is not declared")
            for name in named
            if name not in self._usable
        ]
        usable: list[Scheme] = []
        for name, scopes in named.items():
            if name not in self._usable:
                continue
            try:
                usable.append(_with_scopes(self._usable[name], scopes, server))
            except ValueError as error:
                refusals.append(f"the token URL of {quote_text(name)} is not a URL: {error}")
        return tuple(usable), refusals

    def _name(self, key: str) -> str:
        """The name of a required scheme: the key, or the component that the key names as a URI."""
        if self._identifiers is None or key in self._usable or key in self._refused:
            return key
        pointer = self._identifiers.locate(self._root, key)
        if pointer is None:
            return key
        tokens = ref_tokens(pointer)
        if tokens[:-1] == ["components", "securitySchemes"]:
            return tokens[-1]
        self._take(key, {"$ref": pointer})
        return key

    def _take(self, name: str, node: object) -> None:
        try:
            self._usable[name] = _read(name, self._references.follow(node, "the scheme"))
        except Unusable as unusable:
            self._refused[name] = unusable.reason


def _with_scopes(scheme: Scheme, scopes: object, server: Server) -> Scheme:
    """A client credentials scheme with the required scopes and an absolute token URL; other schemes unchanged.

    Raises:
        ValueError: the token URL is not a URL.
    """
    if scheme.plan.kind is not SchemeKind.CLIENT_CREDENTIALS:
        return scheme
    asked = tuple(scope for scope in as_list(scopes) or () if isinstance(scope, str) and _SCOPE.fullmatch(scope))
    url = urljoin(f"{server.origin}{server.path}/", scheme.plan.token_url or "")
    return msgspec.structs.replace(scheme, plan=replace(scheme.plan, scopes=asked, token_url=url))


def _read(name: str, node: Object) -> Scheme:
    kind = text_at(node, "type")
    if kind == "apiKey":
        return Scheme(plan=_key(name, node))
    if kind == "http":
        scheme = (text_at(node, "scheme") or "").lower()
        return Scheme(plan=_http(name, scheme, text_at(node, "scheme") or ""))
    if kind == "oauth2" and (token_url := _token_url(node)) is not None:
        return Scheme(plan=SchemePlan(name=name, kind=SchemeKind.CLIENT_CREDENTIALS, token_url=token_url))
    if kind in {"oauth2", "openIdConnect"}:
        return Scheme(plan=SchemePlan(name=name, kind=SchemeKind.BEARER), account=account_options(node))
    raise Unusable(f"the security scheme {quote_text(name)} has the type {quote_text(str(kind))}, not supported")


def _http(name: str, scheme: str, written: str) -> SchemePlan:
    if scheme in _HTTP_KINDS:
        return SchemePlan(name=name, kind=_HTTP_KINDS[scheme])
    if not _TOKEN.fullmatch(written) or scheme in _COMPUTED_SCHEMES or scheme.startswith("scram-"):
        raise Unusable(f"the HTTP scheme {quote_text(scheme)} of {quote_text(name)} is not supported")
    return SchemePlan(name=name, kind=SchemeKind.HTTP, field=written)


def _token_url(node: Object) -> str | None:
    """The token URL of the client credentials flow; None if the scheme has none."""
    return text_at(object_at(object_at(node, "flows"), _FLOW), "tokenUrl")


def _key(name: str, node: Object) -> SchemePlan:
    location, field = node.get("in"), text_at(node, "name")
    if not isinstance(location, str) or location not in _KEY_KINDS or field is None:
        raise Unusable(f"the API key {quote_text(name)} has no valid location (`in`)")
    if location != "query" and not _TOKEN.fullmatch(field):
        reason = f"goes into {quote_text(field)}, which is not a valid {location} name"
        raise Unusable(f"the API key {quote_text(name)} {reason}")
    return SchemePlan(name=name, kind=_KEY_KINDS[location], field=field)
