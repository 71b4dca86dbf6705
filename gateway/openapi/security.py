"""Which credentials an operation takes: its security requirements as alternatives of applicable schemes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.plans import SchemeKind, SchemePlan
from gateway.openapi.references import References
from gateway.openapi.shapes import Object, Unusable, as_list, as_object, object_at, quote_text, text_at

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEY_KINDS = {
    "header": SchemeKind.API_KEY_HEADER,
    "query": SchemeKind.API_KEY_QUERY,
    "cookie": SchemeKind.API_KEY_COOKIE,
}
_HTTP_KINDS = {"basic": SchemeKind.BASIC, "bearer": SchemeKind.BEARER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One security scheme as it can be applied; `is_token_needed` where the token has to come from elsewhere."""

    plan: SchemePlan
    is_token_needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityPlan:
    """The alternatives of one operation, and what the admin has to know about them."""

    alternatives: tuple[tuple[SchemePlan, ...], ...] = ()
    losses: tuple[str, ...] = ()


class Schemes:
    """The security schemes of one document: those that can be applied, and why others cannot."""

    def __init__(self, root: Object, references: References) -> None:
        self._usable: dict[str, Scheme] = {}
        self._refused: dict[str, str] = {}
        self._default = root.get("security")
        for name, node in object_at(object_at(root, "components"), "securitySchemes").items():
            try:
                self._usable[name] = _read(name, references.follow(node, "the scheme"))
            except Unusable as unusable:
                self._refused[name] = unusable.reason

    @property
    def names(self) -> tuple[str, ...]:
        """Schemes that a credential can be stored for."""
        return tuple(self._usable)

    def plan(self, operation: Object) -> SecurityPlan:
        """The alternatives of an operation: its own or the document's."""
        required = as_list(operation.get("security", self._default)) or ()
        alternatives: list[tuple[Scheme, ...]] = []
        refusals: dict[str, None] = {}
        for item in required:
            try:
                alternatives.append(self._alternative(as_object(item)))
            except Unusable as unusable:
                refusals[unusable.reason] = None
        if required and not alternatives:
            return SecurityPlan(losses=tuple(f"it is called without a credential: {reason}" for reason in refusals))
        plans = tuple(tuple(scheme.plan for scheme in alternative) for alternative in alternatives)
        return SecurityPlan(alternatives=plans, losses=_token_losses(alternatives))

    def _alternative(self, requirement: Object | None) -> tuple[Scheme, ...]:
        if requirement is None:
            raise Unusable("a security requirement is no object")
        return tuple(self._scheme(name) for name in requirement)

    def _scheme(self, name: str) -> Scheme:
        if name in self._usable:
            return self._usable[name]
        raise Unusable(self._refused.get(name, f"the security scheme {quote_text(name)} is not declared"))


def _token_losses(alternatives: Sequence[tuple[Scheme, ...]]) -> tuple[str, ...]:
    if any(all(not scheme.is_token_needed for scheme in alternative) for alternative in alternatives):
        return ()
    names = dict.fromkeys(
        scheme.plan.name for alternative in alternatives for scheme in alternative if scheme.is_token_needed
    )
    return tuple(f"no token is fetched: store one as the credential {quote_text(name)}" for name in names)


def _read(name: str, node: Object) -> Scheme:
    kind = text_at(node, "type")
    if kind == "apiKey":
        return Scheme(plan=_key(name, node))
    if kind == "http":
        scheme = (text_at(node, "scheme") or "").lower()
        if scheme in _HTTP_KINDS:
            return Scheme(plan=SchemePlan(name=name, kind=_HTTP_KINDS[scheme]))
        raise Unusable(f"the HTTP scheme {quote_text(scheme)} of {quote_text(name)} is not supported")
    if kind in {"oauth2", "openIdConnect"}:
        return Scheme(plan=SchemePlan(name=name, kind=SchemeKind.BEARER), is_token_needed=True)
    raise Unusable(f"the security scheme {quote_text(name)} has the type {quote_text(str(kind))}, not supported")


def _key(name: str, node: Object) -> SchemePlan:
    place, field = node.get("in"), text_at(node, "name")
    if not isinstance(place, str) or place not in _KEY_KINDS or field is None:
        raise Unusable(f"the API key {quote_text(name)} does not say where it goes")
    if place != "query" and not _TOKEN.fullmatch(field):
        raise Unusable(f"the API key {quote_text(name)} goes into {quote_text(field)}, which is no {place} name")
    return SchemePlan(name=name, kind=_KEY_KINDS[place], field=field)
