"""Header parameters that carry a credential: they become security schemes, filled from stored credentials.

A document that declares `X-Vault-Token` as a parameter would offer it to the model, which has no such value.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

from gateway.domain.http.plans import Location, SchemeKind, SchemePlan
from gateway.domain.sources import FilledParameter
from gateway.openapi.operation.limits import MAX_OPTIONAL_HEADERS
from gateway.openapi.operation.paths import PathTemplate, placeholder_mark

_CREDENTIAL = re.compile(
    r"(?:.*[-_])?(?:authorization|auth|token|secret|password|passwd|(?:api|app|application|access|auth|private|secret|subscription)[-_]?key)",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[-_]")
_VALUE_WORDS = frozenset(
    re.findall(
        r"\w+",
        "csrf xsrf page pagination next continuation cursor sync change changes snapshot consistency client request"
        " device push captcha recaptcha idempotency idempotent upload download resume resumption resumable cancel lock",
    )
)
"""Words before `-token` in names of headers that carry a value of the call, not a credential."""

_ACCESS_WORDS = frozenset(("access", "api", "auth", "bearer"))
"""Words directly before `-token` that name a credential, also after a word of `_VALUE_WORDS`."""

_PROXY = "proxy-"

_ELSEWHERE = frozenset((SchemeKind.API_KEY_QUERY, SchemeKind.API_KEY_COOKIE, SchemeKind.API_KEY_PATH))
_KINDS = {
    Location.HEADER: SchemeKind.API_KEY_HEADER,
    Location.QUERY: SchemeKind.API_KEY_QUERY,
    Location.COOKIE: SchemeKind.API_KEY_COOKIE,
}

Alternatives = Sequence[tuple[SchemePlan, ...]]


def is_credential_header(name: str) -> bool:
    """True if values of the header are credentials, by its name."""
    if name.lower().startswith(_PROXY) or _CREDENTIAL.fullmatch(name) is None:
        return False
    *before, last = _WORDS.split(name.lower())
    is_value = last == "token" and before[-1:] and before[-1] not in _ACCESS_WORDS
    return not is_value or _VALUE_WORDS.isdisjoint(before)


def filled_header(scheme: SchemePlan) -> str | None:
    """Return the header that a scheme fills, in lower case; None for a query parameter or a cookie."""
    if scheme.kind in _ELSEWHERE:
        return None
    return scheme.field.lower() if scheme.kind is SchemeKind.API_KEY_HEADER else "authorization"


def header_scheme(name: str) -> SchemePlan:
    """Return the scheme that fills the header; its name is that of the header."""
    return SchemePlan(name=name, kind=SchemeKind.API_KEY_HEADER, field=name)


def add_headers(alternatives: Alternatives, headers: Mapping[SchemePlan, bool]) -> Alternatives:
    """Return the alternatives with the schemes of these headers: a required one in each, optional ones in some.

    A header that an alternative already fills is not added to it. Beyond three optional headers, all or none are sent.
    """
    required = [scheme for scheme, is_required in headers.items() if is_required]
    optional = [scheme for scheme, is_required in headers.items() if not is_required]
    numbers = range(len(optional), -1, -1) if len(optional) <= MAX_OPTIONAL_HEADERS else (len(optional), 0)
    choices = [choice for number in numbers for choice in combinations(optional, number)]
    found = [_filled(plans, (*required, *choice)) for choice in choices for plans in alternatives or ((),)]
    return tuple(dict.fromkeys(found))


def _filled(plans: tuple[SchemePlan, ...], added: Sequence[SchemePlan]) -> tuple[SchemePlan, ...]:
    known = {filled_header(plan) for plan in plans}
    return (*plans, *(scheme for scheme in added if filled_header(scheme) not in known))


def fill_parameters(
    alternatives: Alternatives, parameters: Sequence[FilledParameter], template: PathTemplate
) -> Alternatives:
    """Return the alternatives with the source's parameters in each, and one that has only these.

    A parameter replaces a scheme of the document in the same place. A placeholder is filled where the path has it.
    """
    schemes = tuple(
        SchemePlan(name=one.credential, kind=SchemeKind.API_KEY_PATH, field=placeholder_mark(one.name))
        if one.location is Location.PATH
        else SchemePlan(name=one.credential, kind=_KINDS[one.location], field=one.name)
        for one in parameters
        if one.location is not Location.PATH or one.name in template.filled
    )
    if not schemes:
        return alternatives
    places = {_place(scheme) for scheme in schemes}
    found = [(*(plan for plan in plans if _place(plan) not in places), *schemes) for plans in alternatives]
    return tuple(dict.fromkeys([*found, schemes]))


def _place(scheme: SchemePlan) -> tuple[str, str]:
    header = filled_header(scheme)
    return ("header", header) if header is not None else (scheme.kind.value, scheme.field)
