"""Response headers that are included in tool results: locations, paging, validators, rate limits.

Values are untrusted: control characters and the user part of URLs are removed here. Later steps redact stored
credentials and then truncate values.
"""

import re

from gateway.upstream.http.response import Response

SHOWN = frozenset(
    (
        *(
            b"location",
            b"content-location",
            b"link",
            b"etag",
            b"last-modified",
            b"retry-after",
            b"deprecation",
            b"sunset",
        ),
        *(b"x-total-count", b"x-total", b"x-total-pages", b"x-page", b"x-per-page", b"x-next-page", b"x-prev-page"),
        *(b"ratelimit", b"ratelimit-policy", b"ratelimit-limit", b"ratelimit-remaining", b"ratelimit-reset"),
        *(b"x-ratelimit-limit", b"x-ratelimit-remaining", b"x-ratelimit-reset", b"x-ratelimit-used"),
        *(b"x-ratelimit-limit-requests", b"x-ratelimit-remaining-requests", b"x-ratelimit-reset-requests"),
        *(b"x-ratelimit-limit-tokens", b"x-ratelimit-remaining-tokens", b"x-ratelimit-reset-tokens"),
        *(b"x-rate-limit-limit", b"x-rate-limit-remaining", b"x-rate-limit-reset", b"x-ratelimit-resource"),
    )
)
"""Lower-case names of the headers that a result includes."""

_BODILESS_HEADERS = frozenset((b"content-type", b"content-length", b"accept-ranges", b"allow"))
"""Headers that are also included if a response has no body, as after HEAD and OPTIONS."""
_EMPTY = (b"content-length", "0")
_LOCATION = b"location"
_FIRST_REDIRECT, _FIRST_REFUSAL = 300, 400
_USER = re.compile(r"//[^/?#<>\s\"]*@")


def read_shown_headers(response: Response, *, has_body: bool) -> tuple[tuple[str, str], ...]:
    """Return the included headers of a response, except the target of a redirect, whose query may contain secrets."""
    names = response.names
    if has_body and SHOWN.isdisjoint(names):
        return ()
    is_redirect = _FIRST_REDIRECT <= response.status < _FIRST_REFUSAL
    chosen = SHOWN if has_body else SHOWN | _BODILESS_HEADERS
    if is_redirect:
        chosen = chosen - {_LOCATION}  # guard: redirect-target-hidden
    values = ((name, response.field(name)) for name in names if name in chosen)
    return tuple((name.decode(), _clean(value)) for name, value in values if value and (name, value) != _EMPTY)


def _clean(value: str) -> str:
    printable = value if value.isprintable() else "".join(one for one in value if one.isprintable())
    return _USER.sub("//", printable)  # guard: shown-header-user
