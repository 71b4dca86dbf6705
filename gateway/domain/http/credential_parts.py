"""Parts of a stored credential that are secret by themselves.

Users store an Authorization header with the name of its scheme (`Bearer …`), or with parameters (`Token token="…"`).
Upstreams receive and echo the parts alone.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace

from gateway.domain.http.limits import MIN_PARAMETER_LENGTH
from gateway.domain.http.requests import Credential

_SCHEME = re.compile(r"\s*(\S+)\s+(.*)", re.DOTALL)
_PARAMETER = re.compile(r"""(?<![\w.-])[A-Za-z][\w.-]*+\s*+=\s*("(?:[^"\\]|\\.)*+"|'[^']*+'|[^\s,;"']*+)""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def split_scheme(value: str) -> tuple[str, str]:
    """Return the name of the scheme, empty if there is none, and the bare credential."""
    found = _SCHEME.fullmatch(value)
    return (found[1], found[2].strip()) if found else ("", value)


def parts_of(credential: Credential) -> Iterator[Credential]:
    """Return the credential, the one without its scheme, and the values of its parameters; a part may repeat."""
    yield credential
    if credential.username is not None:
        return
    scheme, bare = split_scheme(credential.value)
    if scheme:
        yield replace(credential, value=bare)
    if scheme.lower() == "basic":
        yield from _pair_of(bare)
    for found in _PARAMETER.finditer(credential.value):
        if len(value := _unquote(found[1])) >= MIN_PARAMETER_LENGTH:
            yield replace(credential, value=value)


def _pair_of(bare: str) -> Iterator[Credential]:
    """Return user name and password of the Basic scheme (RFC 7617)."""
    try:
        username, colon, password = b64decode(bare).decode().partition(":")
    except ValueError:
        return
    if colon:
        yield Credential(username=username, value=password)


def _unquote(value: str) -> str:
    if value.startswith('"'):
        return _ESCAPED.sub(r"\1", value[1:-1])
    return value.strip("'")
