"""Encrypted and authenticated cookies. Their lifetime starts when the gateway last wrote them.

Browsers accept the prefix `__Host-` only with TLS, from this host and for all its paths, so another host cannot set
such a cookie. Without TLS the cookie has another name, and a value encrypted for one name is invalid under the other.
"""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class SealedCookies:
    """Cookies of one purpose, whose name may have a suffix. `keys` decrypt them; the first key encrypts new ones."""

    def __init__(
        self,
        keys: Sequence[bytes],
        name: str,
        *,
        life_s: int,
        same_site: Literal["Strict", "Lax"],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._seal = MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])
        self._name = name
        self._life_s = life_s
        self._same_site = same_site
        self._clock = clock

    def write(self, value: bytes, *, is_secure: bool, suffix: str = "") -> str:
        """Return the `Set-Cookie` header with an encrypted value."""
        name = self._cookie_name(suffix, is_secure=is_secure)
        sealed = self._seal.encrypt_at_time(msgspec.msgpack.encode((name, value)), int(self._clock())).decode()
        return self._header(name, sealed, is_secure=is_secure, max_age=self._life_s)

    def read(self, cookies: Mapping[str, str], suffix: str = "") -> tuple[bytes, bool] | None:
        """Return the value, and True if the cookie was set over TLS; None without a valid cookie."""
        for is_secure in (True, False):
            name = self._cookie_name(suffix, is_secure=is_secure)
            if (token := cookies.get(name)) is None:
                continue
            try:
                plain = self._seal.decrypt_at_time(token, self._life_s, int(self._clock()))  # guard: cookie-life
                sealed_for, value = msgspec.msgpack.decode(plain, type=tuple[str, bytes])
            except (InvalidToken, ValueError):
                continue
            if sealed_for == name:  # guard: cookie-name
                return value, is_secure
        return None

    def suffixes(self, cookies: Mapping[str, str]) -> Sequence[str]:
        """Return the suffixes of the browser's cookies of this purpose."""
        names = [self._cookie_name("", is_secure=is_secure) + "-" for is_secure in (True, False)]
        return [found.removeprefix(name) for found in cookies for name in names if found.startswith(name)]

    def ended(self, suffix: str = "") -> tuple[str, str]:
        """Return the `Set-Cookie` headers that delete a cookie in the browser."""
        return self._ended(suffix, is_secure=True), self._ended(suffix, is_secure=False)

    def _ended(self, suffix: str, *, is_secure: bool) -> str:
        return self._header(self._cookie_name(suffix, is_secure=is_secure), "", is_secure=is_secure, max_age=0)

    def _cookie_name(self, suffix: str, *, is_secure: bool) -> str:
        prefix, more = "__Host-" if is_secure else "", f"-{suffix}" if suffix else ""
        return f"{prefix}{self._name}{more}"

    def _header(self, name: str, sealed: str, *, is_secure: bool, max_age: int) -> str:
        more = "; Secure" if is_secure else ""
        return f"{name}={sealed}; Path=/; Max-Age={max_age}; HttpOnly; SameSite={self._same_site}{more}"
