"""Byte forms of a credential for the search in decoded text, such as plain, base64 at any offset, and hex.

`escapes` decodes the text and removes ignored bytes (it "squeezes" the text). All forms except `exact` are squeezed as
well.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from urllib.parse import quote

from gateway.domain.http.credential_parts import parts_of
from gateway.domain.http.requests import Credential
from gateway.domain.text_search.escapes import ALL_ESCAPES, DECODING_ROUNDS, decode, squeeze
from gateway.handlers.redaction.limits import MIN_SECRET_LENGTH

_EDGES = ((0, 0), (1, 2), (2, 3))
"""For each offset in a group of three bytes: padding bytes in front, and the base64 characters that they affect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretEncodings:
    """Byte forms of secrets: `plain` and `base64` for squeezed text, `exact` for text that squeezing would
    shorten too much.
    """

    plain: tuple[bytes, ...]
    base64: tuple[bytes, ...]
    exact: tuple[bytes, ...]
    is_ascii: bool


def encodings_of(credentials: Iterable[Credential]) -> SecretEncodings:
    """Return the forms of all credentials and of their parts."""
    plain: dict[bytes, None] = {}
    in_base64: dict[bytes, None] = {}
    exact: dict[bytes, None] = {}
    is_ascii = True
    for credential in chain.from_iterable(map(parts_of, credentials)):  # guard: redaction-of-parts
        pair = _basic_pair(credential)
        if len(pair) >= MIN_SECRET_LENGTH:
            in_base64.update(dict.fromkeys(_b64_forms(pair, offsets=1)))
            in_base64.update(dict.fromkeys(_b64_forms(b64encode(pair))))
        if len(credential.value) < MIN_SECRET_LENGTH:
            continue
        is_ascii = is_ascii and credential.value.isascii()
        raw = credential.value.encode("utf-8", "surrogatepass")
        for form in _spellings(credential.value, raw):
            squeezed = squeeze(form)
            if len(squeezed) >= MIN_SECRET_LENGTH:
                plain[squeezed] = None
            elif len(form) >= MIN_SECRET_LENGTH:
                exact[form] = None
        for inner in _b64_contents(credential.value, raw):
            in_base64.update(dict.fromkeys(_b64_forms(inner)))
    return SecretEncodings(plain=tuple(plain), base64=tuple(in_base64), exact=tuple(exact), is_ascii=is_ascii)


def _basic_pair(credential: Credential) -> bytes:
    if credential.username is None:
        return b""
    return f"{credential.username}:{credential.value}".encode("utf-8", "surrogatepass")


def _spellings(value: str, raw: bytes) -> Iterator[bytes]:
    """Return the spellings of a secret: itself, with escapes decoded, quoted-printable, hex, UTF-16 and cp1252."""
    yield raw
    decoded = raw
    for _ in range(DECODING_ROUNDS):
        decoded = decode(decoded, ALL_ESCAPES)
    yield decoded
    if b"=" in raw or not value.isascii():
        yield b"".join(b"=%02X" % byte if byte == ord("=") or byte > 126 else bytes((byte,)) for byte in raw)
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    if not value.isascii():
        for charset in ("utf-16-le", "utf-16-be", "cp1252"):
            with suppress(UnicodeEncodeError):
                yield value.encode(charset)


def _b64_contents(value: str, raw: bytes) -> set[bytes]:
    """Return the byte strings to search in base64: the secret, its URL and JSON spellings, and its UTF-16."""
    quoted = quote(raw, safe="")
    return {
        raw,
        quoted.encode(),
        quoted.lower().encode() if "%" in quoted else raw,
        raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"'),
        raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"/", b"\\/"),
        value.encode("utf-16-le", "surrogatepass").rstrip(
            b"\0"
        ),  # the other byte order has the same bytes, shifted by one
    }


def _b64_forms(raw: bytes, *, offsets: int = 3) -> Iterator[bytes]:
    """Return the base64 of these bytes in both alphabets, at the first `offsets` of three offsets."""
    for before, cut in _EDGES[:offsets]:  # guard: redaction-of-base64
        whole = (before + len(raw)) * 8 // 6
        encoded = b64encode(b"\0" * before + raw)[cut:whole]
        for form in {encoded, encoded.translate(bytes.maketrans(b"+/", b"-_"))}:
            squeezed = squeeze(form)
            if len(squeezed) >= MIN_SECRET_LENGTH:
                yield squeezed
