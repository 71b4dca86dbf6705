"""Assertions of the gateway (RFC 7519): JWTs that identify the caller to an upstream, and the JWK set to verify them.

All signing keys are published, so that a rotation of secret keys does not invalidate existing assertions.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from gateway.domain.tenancy.principals import Principal
from gateway.errors import CredentialMissing
from gateway.upstream.auth.limits import ASSERTION_LIFETIME_S
from gateway.upstream.auth.signing_keys import SigningKeys


class AssertionSigner:
    """Signs assertions, and publishes the keys that verify them."""

    def __init__(self, derive_all: Callable[[str], Sequence[bytes]], *, public_url: str | None) -> None:
        """`derive_all` returns the secret bytes for a purpose from each secret key, the current one first."""
        self._keys = SigningKeys(derive_all("assertions"))
        self._public_url = public_url

    @property
    def key_set(self) -> dict[str, object]:
        """The JWK set (RFC 7517) for upstreams."""
        return {"keys": self._keys.published}

    def sign(self, principal: Principal, *, audience: str, action: tuple[str, str]) -> str:
        """Sign an assertion about the caller; `action` is the kind of the call and the name of its primitive.

        Raises:
            CredentialMissing: the gateway has no public URL, or the audience is the gateway itself.
        """
        check_audience(audience, self._public_url)
        now = int(time.time())
        claims = {
            "iss": f"{self._public_url}/t/{principal.slug}",
            "sub": principal.subject,
            "principal": principal.name,
            "aud": audience,
            "iat": now,
            "exp": now + ASSERTION_LIFETIME_S,
            "jti": secrets.token_urlsafe(16),
            "tenant": principal.slug,
            "tool": action[1],
        }
        return self._keys.sign(claims, kind="JWT")


def check_audience(audience: str, public_url: str | None) -> None:
    """Refuse the gateway itself as the audience of an assertion.

    Raises:
        CredentialMissing: the gateway has no public URL, or the audience is invalid or the gateway itself.
    """
    if public_url is None:
        raise CredentialMissing("Signed assertions need the public URL of the gateway: set GATEWAY_PUBLIC_URL.")
    try:
        is_own = is_of_gateway(audience, public_url)
    except ValueError:
        raise CredentialMissing("The audience of a signed assertion looks like a URL, but is not valid.") from None
    if is_own:  # guard: assertion-audience
        raise CredentialMissing("The audience of a signed assertion must not be a URL of the gateway itself.")


def is_of_gateway(text: str, public_url: str) -> bool:
    """True if a text is a URL of the gateway; raises ValueError for a malformed URL."""
    return urlsplit(text).netloc.lower() == urlsplit(public_url).netloc.lower()
