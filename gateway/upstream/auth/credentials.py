"""Application of stored credentials to requests.

Of the operation's security alternatives, the first one whose credentials are all stored is used. A credential replaces
an argument of the same name, so the caller cannot override it, and it is never sent twice.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from urllib.parse import unquote_plus

from msgspec.structs import replace

from gateway.domain.http.credential_parts import split_scheme
from gateway.domain.http.headers import is_token
from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import Credential, UpstreamRequest
from gateway.errors import CredentialMissing
from gateway.upstream.serialize.header_checks import is_header_value, is_sendable_header
from gateway.upstream.serialize.path_safety import check_path_value
from gateway.upstream.serialize.percent_encoding import Unwritable, percent

Security = tuple[tuple[SchemePlan, ...], ...]

_SECRET_HEADER = re.compile("authorization|cookie|key|token|secret", re.IGNORECASE)
"""Header names that indicate a secret, even if it is not a stored credential."""
_DIGEST_KEY = secrets.token_bytes(32)
"""Random key of this process: without the key, a logged digest cannot confirm a guessed secret."""


def apply(request: UpstreamRequest, security: Security, credentials: Mapping[str, Credential]) -> UpstreamRequest:
    """Add the stored credentials to a request.

    Stored credentials are used even if they are optional. The request is returned unchanged if credentials are optional
    and none are stored.

    Raises:
        CredentialMissing: every alternative lacks a stored credential, or a stored value cannot be sent.
    """
    chosen = require(security, credentials)
    if not chosen:
        return request
    for scheme in chosen:
        request = _apply(request, scheme, credentials[scheme.name])
    held = (credentials[scheme.name] for scheme in chosen)
    # guard: credential-on-the-request
    return replace(request, credential=digest_of(part for one in held for part in (one.username or "", one.value)))


def require(security: Security, credentials: Mapping[str, Credential]) -> tuple[SchemePlan, ...]:
    """Return the first alternative whose credentials are all stored; empty if none is needed.

    Raises:
        CredentialMissing: every alternative lacks a stored credential.
    """
    chosen = choose(security, credentials)
    if chosen is not None:
        return chosen
    if not security or () in security:
        return ()
    ways = " or ".join(" with ".join(repr(scheme.name) for scheme in alternative) for alternative in security)
    raise CredentialMissing(f"This operation needs a credential that the source does not have: {ways}.")


def digest_of(secret_values: Iterable[str]) -> bytes:
    """Return the digest of the secrets in this order, which is part of the key of pooled connections."""
    digest = hashlib.blake2b(digest_size=16, key=_DIGEST_KEY)
    for value in secret_values:
        encoded = value.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.digest()


def digest_of_headers(headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the digest of the headers whose names indicate a secret; empty if there are none."""
    found = sorted((name.lower(), value) for name, value in headers if _SECRET_HEADER.search(name))
    return digest_of(part for header in found for part in header) if found else b""


def choose(security: Security, credentials: Mapping[str, Credential]) -> tuple[SchemePlan, ...] | None:
    """Return the first non-empty alternative whose credentials are all stored; None if there is none."""
    for alternative in security:
        if alternative and all(scheme.name in credentials for scheme in alternative):
            return alternative
    return None


def _apply(request: UpstreamRequest, scheme: SchemePlan, credential: Credential) -> UpstreamRequest:
    if scheme.kind is SchemeKind.BASIC:
        return _with_header(request, scheme, "Authorization", f"Basic {_pair(scheme, credential)}")
    if scheme.kind in {SchemeKind.BEARER, SchemeKind.CLIENT_CREDENTIALS}:
        return _with_header(request, scheme, "Authorization", f"Bearer {_bare(credential.value, 'Bearer')}")
    if not credential.value:
        raise _unusable(scheme)
    if scheme.kind is SchemeKind.HTTP:
        return _with_header(request, scheme, "Authorization", f"{scheme.field} {_bare(credential.value, scheme.field)}")
    if scheme.kind is SchemeKind.API_KEY_HEADER:
        return _with_header(request, scheme, scheme.field, credential.value)
    if scheme.kind is SchemeKind.API_KEY_PATH:
        return _with_segment(request, scheme, credential.value)
    if scheme.kind is SchemeKind.API_KEY_COOKIE:
        return _with_cookie(request, scheme, credential.value)
    return _with_query(request, scheme, credential.value)


def _bare(value: str, scheme: str) -> str:
    """Return the credential without the name of its scheme, which users paste together with it."""
    name, bare = split_scheme(value)
    return bare if name.lower() == scheme.lower() else value


def _pair(scheme: SchemePlan, credential: Credential) -> str:
    """Return user name and password in base64 of UTF-8 (RFC 7617)."""
    username = credential.username
    if username is None:
        raise CredentialMissing(f"The credential of {scheme.name!r} needs a user name and a password; store both.")
    if ":" in username or not (username + credential.value).isprintable():
        raise _unusable(scheme)
    try:
        return base64.b64encode(f"{username}:{credential.value}".encode()).decode("ascii")
    except UnicodeEncodeError:
        raise _unusable(scheme) from None


def _with_header(request: UpstreamRequest, scheme: SchemePlan, name: str, value: str) -> UpstreamRequest:
    lower = name.lower()
    if not is_sendable_header(name) or lower == "content-type" or not is_header_value(value):
        raise _unusable(scheme)
    kept = tuple(header for header in request.headers if header[0].lower() != lower)  # guard: credential-over-argument
    return replace(request, headers=(*kept, (name, value)))


def _with_cookie(request: UpstreamRequest, scheme: SchemePlan, value: str) -> UpstreamRequest:
    if not is_token(scheme.field) or not is_header_value(value):
        raise _unusable(scheme)
    pairs: list[str] = []
    for name, held in request.headers:
        if name.lower() == "cookie":
            pairs += [pair for pair in held.split("; ") if pair.partition("=")[0] != scheme.field]
    pairs.append(f"{scheme.field}={_cookie_text(value)}")
    kept = tuple(header for header in request.headers if header[0].lower() != "cookie")
    return replace(request, headers=(*kept, ("Cookie", "; ".join(pairs))))


def _cookie_text(value: str) -> str:
    """Return the value; percent-encoded if it has a blank, quote, comma, semicolon or backslash (RFC 6265)."""
    return percent(value) if any(character in ' ",;\\' for character in value) else value


def _with_query(request: UpstreamRequest, scheme: SchemePlan, value: str) -> UpstreamRequest:
    try:
        pair = f"{percent(scheme.field)}={percent(value)}"
    except Unwritable:
        raise _unusable(scheme) from None
    if not value.isprintable():
        raise _unusable(scheme)
    path, _, query = request.url.partition("?")
    pairs = [held for held in query.split("&") if held and unquote_plus(held.partition("=")[0]) != scheme.field]
    return replace(request, url=f"{path}?{'&'.join([*pairs, pair])}")


def _with_segment(request: UpstreamRequest, scheme: SchemePlan, value: str) -> UpstreamRequest:
    """Fill the placeholder of the path; an argument that repeats it would send the secret in its own place."""
    path, mark, query = request.url.partition("?")
    if path.count(scheme.field) != 1:  # guard: placeholder-once
        raise CredentialMissing(f"An argument repeats the placeholder of the credential {scheme.name!r} in the path.")
    try:
        check_path_value(value)
        text = percent(value)
    except Unwritable:
        raise _unusable(scheme) from None
    return replace(request, url=f"{path.replace(scheme.field, text)}{mark}{query}")


def _unusable(scheme: SchemePlan) -> CredentialMissing:
    return CredentialMissing(
        f"The credential stored for {scheme.name!r} cannot be sent in the form of this scheme; store it again."
    )
