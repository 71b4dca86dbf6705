"""Header parameters that carry a credential: they become security schemes, filled from stored credentials.

A document that declares `X-Vault-Token` as a parameter would offer it to the model, which has no such value.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

from gateway.domain.http.plans import SchemeKind, SchemePlan

_CREDENTIAL = re.compile(
    r"(?:proxy-)?authorization|(?:.*[-_])?(?:api|access|auth|private|secret|subscription)[-_]?key"
    r"|(?:.*[-_])?(?:token|secret|password|passwd)|(?:.*[-_])?auth",
    re.IGNORECASE,
)
_NOT_CREDENTIALS = re.compile(
    r"[cx]srf|page|next|continuation|cursor|sync|client|idempot|request|captcha|device|resum|upload|push|cancel|change"
    r"|download|consistency|snapshot|session-?id",
    re.IGNORECASE,
)
"""Words in names of tokens that are values of a call, not credentials."""

_MAX_OPTIONAL = 3
_PROXY = "proxy-"

Alternatives = Sequence[tuple[SchemePlan, ...]]


def is_credential_header(name: str) -> bool:
    """True if values of the header are credentials, by its name."""
    is_proxys = name.lower().startswith(_PROXY)
    return not is_proxys and _CREDENTIAL.fullmatch(name) is not None and _NOT_CREDENTIALS.search(name) is None


def filled_header(scheme: SchemePlan) -> str | None:
    """Return the header that a scheme fills, in lower case; None for a query parameter or a cookie."""
    if scheme.kind in {SchemeKind.API_KEY_QUERY, SchemeKind.API_KEY_COOKIE}:
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
    numbers = range(len(optional), -1, -1) if len(optional) <= _MAX_OPTIONAL else (len(optional), 0)
    choices = [choice for number in numbers for choice in combinations(optional, number)]
    found = [_filled(plans, (*required, *choice)) for choice in choices for plans in alternatives or ((),)]
    return tuple(dict.fromkeys(found))


def _filled(plans: tuple[SchemePlan, ...], added: Sequence[SchemePlan]) -> tuple[SchemePlan, ...]:
    known = {filled_header(plan) for plan in plans}
    return (*plans, *(scheme for scheme in added if filled_header(scheme) not in known))
