"""Access tokens that the gateway issues itself (RFC 9068), signed and verified with its own keys.

The keys are derived for this purpose only and are not published, so an assertion of the gateway is never accepted as an
access token, and vice versa. A token is for one resource, and contains the id of its grant.
"""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt
import msgspec
from jwt.utils import base64url_decode

from gateway.domain.identifiers import IssuerId, KeyId
from gateway.domain.tenancy.grants import Grant
from gateway.domain.tenancy.issuers import IdentityClaims, Issuer
from gateway.identity.access_tokens import TokenRejected, texts_of
from gateway.identity.limits import MAX_GROUPS_LENGTH
from gateway.upstream.auth.signing_keys import ALGORITHM, SigningKeys

TOKEN_PURPOSE = "issued access tokens"  # noqa: S105  # a purpose of derived keys
_TYPE = "at+jwt"
_REQUIRED = ("iss", "sub", "aud", "exp", "iat", "client_id", "idp", "grant")
_BROKEN = (jwt.PyJWTError, ValueError, TypeError, KeyError, RecursionError, OverflowError, AttributeError)


class _IssuerClaim(msgspec.Struct):
    iss: object = None


class _AudienceClaim(msgspec.Struct):
    """The audience of a token, which is one text or several."""

    aud: str | list[str] = ""


_decode_audience = msgspec.json.Decoder(_AudienceClaim).decode
_decode_issuer = msgspec.json.Decoder(_IssuerClaim).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """The contents of a verified token; `provider` is the issuer at which the person signed in."""

    grant: KeyId
    provider: IssuerId
    client: str
    person: IdentityClaims
    expires_at: datetime
    thumbprint: str | None = None
    """Thumbprint of the client's key to which the token is bound (`cnf.jkt`, RFC 9449 section 6.1)."""


class IssuedTokens:
    """Signs and verifies tokens of all tenants."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    def sign(
        self,
        grant: Grant,
        person: IdentityClaims,
        provider: Issuer,
        *,
        issuer: str,
        life_s: int,
        thumbprint: str | None = None,
    ) -> str:
        """Sign an access token of a grant; `issuer` is the identifier of the tenant's authorization server.

        A token contains all groups of the person; if these are too long, only the groups that the provider's rules use.
        """
        now = int(time.time())
        groups, has_all = _groups_of(person, provider)
        claims: dict[str, Any] = {
            "iss": issuer,
            "sub": person.subject,
            "aud": grant.resource,
            "iat": now,
            "exp": now + life_s,
            "jti": secrets.token_urlsafe(16),
            "client_id": grant.client,
            "scope": " ".join(grant.scopes),
            "idp": provider.id,
            "grant": grant.id,
            "groups": groups,
            "all_groups": has_all,
        }
        if thumbprint is not None:
            claims["cnf"] = {"jkt": thumbprint}
        return self._keys.sign(claims, kind=_TYPE)

    def verify(self, text: str, *, issuer: str, audience: str | None) -> IssuedToken:
        """Verify a token of this authorization server; `audience` is the resource, or None for any resource.

        Raises:
            TokenRejected: the token is invalid, or of another server or resource.
        """
        claims = self._verify(text, issuer, audience)
        try:
            return IssuedToken(
                grant=KeyId(str(claims["grant"])),
                provider=IssuerId(str(claims["idp"])),
                client=str(claims["client_id"]),
                person=IdentityClaims(
                    subject=str(claims["sub"]),
                    groups=texts_of(claims.get("groups")),
                    scopes=texts_of(claims.get("scope")),
                    has_all_groups=claims.get("all_groups") is True,
                ),
                expires_at=datetime.fromtimestamp(float(claims["exp"]), UTC),
                thumbprint=str(claims["cnf"]["jkt"]) if "cnf" in claims else None,
            )
        except _BROKEN:
            raise TokenRejected("claims") from None

    def _verify(self, text: str, issuer: str, audience: str | None) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(text)
            key = self._keys.find(header.get("kid"))
            if key is None or header.get("typ") != _TYPE:  # guard: issued-token-type
                raise TokenRejected("key")
            return jwt.decode(
                text,
                key=key,
                algorithms=[ALGORITHM],
                audience=audience,  # guard: issued-token-audience
                issuer=issuer,  # guard: issued-token-issuer
                leeway=0,
                options={
                    "require": list(_REQUIRED),
                    "verify_iat": False,  # the clock of the issuing replica may be ahead
                    "verify_aud": audience is not None,
                    "strict_aud": True,
                },
            )
        except jwt.InvalidAudienceError:
            raise TokenRejected("audience") from None
        except jwt.ExpiredSignatureError:
            raise TokenRejected("time") from None
        except _BROKEN:
            raise TokenRejected("form") from None


def issuer_claim(text: str) -> object:
    """Return the unverified issuer claim of a token; None if the token is malformed.

    Only this claim is decoded, because the parser of PyJWT costs as much as a signature.
    """
    try:
        return _decode_issuer(base64url_decode(text.split(".", 2)[1])).iss
    except (ValueError, IndexError, RecursionError):  # msgspec's errors are of ValueError
        return None


def names_audience(text: str, audience: str) -> bool:
    """True if the unverified audience claim of a token names this audience; the verification follows."""
    try:
        found = _decode_audience(base64url_decode(text.split(".", 2)[1])).aud
    except (ValueError, IndexError, RecursionError):  # msgspec's errors are of ValueError
        return False
    return found == audience or (isinstance(found, list) and audience in found)


def _groups_of(person: IdentityClaims, provider: Issuer) -> tuple[list[str], bool]:
    """Return the groups to put into a token, and True if these are all groups of the person."""
    if sum(map(len, person.groups)) <= MAX_GROUPS_LENGTH:
        return sorted(person.groups), person.has_all_groups  # guard: issued-token-groups
    named = sorted(person.groups & {rule.group for rule in provider.rules if rule.group is not None})
    while sum(map(len, named)) > MAX_GROUPS_LENGTH:
        named.pop()
    return named, False
