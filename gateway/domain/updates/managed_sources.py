"""Sources as manifests have them: their options, the document, and the owner of its versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from gateway.domain.members.formats import NAME
from gateway.domain.members.markers import About, Check, Form, Length
from gateway.domain.members.secret import SecretText, check_one_line
from gateway.domain.sources import Source

SHA256 = "sha256:"
"""The first part of a digest in a manifest."""
_DIGITS = 64
_HEXADECIMAL = frozenset("0123456789abcdef")
_Parameter = Annotated[str, Length(least=1, most=1000)]


class VersionOwner(StrEnum):
    """Owner of a source's versions, unless the manifest pins one."""

    GATEWAY = "gateway"
    """The gateway fetches the document from the URL; refreshes and people activate versions."""


def check_digest(text: str) -> str:
    """Return the text if it is the digest of a document.

    Raises:
        ValueError: it is not.
    """
    digits = text.removeprefix(SHA256)
    if digits == text or len(digits) != _DIGITS or not _HEXADECIMAL.issuperset(digits):
        raise ValueError(f"must be {SHA256} and the SHA-256 of the document in small hexadecimal digits")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCredential:
    """A credential of a source: a value, a user name with a password, or the name of a stored credential."""

    value: Annotated[SecretText | None, About("The key or token.")] = None
    username: Annotated[
        Annotated[str, Length(least=1, most=1024), Check(check_one_line)] | None,
        About("The user name, or the client id of client credentials."),
    ] = None
    password: Annotated[SecretText | None, About("The password, or the client secret of client credentials.")] = None
    audience: Annotated[_Parameter | None, About("The API that the token of client credentials is for.")] = None
    resource: Annotated[_Parameter | None, About("The resource that the token is for (RFC 8707).")] = None
    credential: Annotated[
        Annotated[str, Form(NAME)] | None, About("The name of a credential of the tenant, in place of a secret.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedSource(Source):
    """A source as a manifest describes it: its options and the origin of its document."""

    document: Annotated[
        Annotated[str, Check(check_digest)] | None,
        About(
            "The document, which pins the version: `sha256:` and the SHA-256 of an uploaded or stored document; in a "
            "file, also a path beside it."
        ),
    ] = None
    refresh: Annotated[
        VersionOwner | None,
        About("`gateway`: the gateway fetches the document from the URL and owns its versions. It pins no version."),
    ] = None
    credentials: Annotated[
        Mapping[Annotated[str, Length(least=1, most=200)], SourceCredential] | None,
        Length(most=50),
        About("Secrets by name of the document's security scheme; null keeps the stored ones."),
    ] = None
    allow_removals: Annotated[
        bool, About("True permits a document that removes tools; otherwise it is refused (409).")
    ] = False
