"""Encodings in which servers write text, each with the way back, for tests of what must not be readable."""

import json
import quopri
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from textwrap import wrap
from urllib.parse import quote, quote_plus, unquote, unquote_plus

Text = Callable[[str], str]
NAMES = {"/": "sol", "+": "plus", "=": "equals", "&": "amp", "<": "lt", ">": "gt", '"': "quot"}


@dataclass(frozen=True, slots=True)
class Encoding:
    """One encoding: `decode` is the standard library's, so every reader can decode what it finds."""

    name: str
    encode: Text
    decode: Text

    def __str__(self) -> str:
        return self.name


def _each(write: Callable[[int], str]) -> Text:
    return lambda text: "".join(write(ord(character)) for character in text)


def _every_third(write: Callable[[int], str]) -> Text:
    return lambda text: "".join(write(ord(one)) if place % 3 == 1 else one for place, one in enumerate(text))


def _unescape(text: str) -> str:
    """As a JSON text, in any context."""
    text = re.sub(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})", lambda one: chr(int(one[1] or one[2], 16)), text)
    return re.sub(r"\\(.)", r"\1", text)


def _of_base64(text: str) -> str:
    """All that base64 holds, at any offset, in either alphabet."""
    found: list[str] = []
    joined = re.sub(r"\s", "", text).translate(str.maketrans("-_", "+/"))
    for run in re.findall(r"[A-Za-z0-9+/]{8,}", joined):
        for offset in range(4):
            part = run[offset : len(run) - ((len(run) - offset) % 4 == 1)]
            found.append(b64decode(part + "=" * (-len(part) % 4)).decode("latin-1"))
    return "\n".join(found)


def _in_base64(before: int, alphabet: bytes = b"+/") -> Text:
    return lambda text: b64encode(b"#" * before + text.encode() + b"..", altchars=alphabet).decode()


def _of_hex(text: str) -> str:
    runs = re.findall(r"(?:[0-9a-fA-F]{2}\s?){6,}", text)
    return "\n".join(bytes.fromhex(run).decode("latin-1") for run in runs)


def _decimal_without_end(text: str) -> str:
    following = [*text[1:], ""]
    return "".join(
        f"&#{ord(one)}" + (";" if after.isdigit() else "") for one, after in zip(text, following, strict=True)
    )


def _twice(first: Text, second: Text) -> Text:
    return lambda text: second(first(text))


_PERCENT = _each(lambda code: f"%{code:02X}")
_HTML = _each(lambda code: f"&#{code};")
_UNICODE = _each(lambda code: f"\\u{code:04x}")

ENCODINGS = (
    Encoding("plain", str, str),
    Encoding("solidus", lambda text: json.dumps(text)[1:-1].replace("/", "\\/"), _unescape),
    Encoding("unicode_lower", _UNICODE, _unescape),
    Encoding("unicode_upper", _each(lambda code: f"\\u{code:04X}"), _unescape),
    Encoding("unicode_partly", _every_third(lambda code: f"\\u{code:04X}"), _unescape),
    Encoding("hex_escapes", _each(lambda code: f"\\x{code:02x}"), _unescape),
    Encoding("html_named", lambda text: "".join(f"&{NAMES[one]};" if one in NAMES else one for one in text), unescape),
    Encoding("html_decimal", _HTML, unescape),
    Encoding("html_decimal_zeros", _each(lambda code: f"&#{code:07};"), unescape),
    Encoding("html_decimal_without_end", _decimal_without_end, unescape),
    Encoding("html_hex", _each(lambda code: f"&#x{code:x};"), unescape),
    Encoding("html_hex_upper_zeros", _each(lambda code: f"&#X{code:06X};"), unescape),
    Encoding("html_partly", _every_third(lambda code: f"&#x{code:X};"), unescape),
    Encoding("percent", _PERCENT, unquote),
    Encoding("percent_lower", _each(lambda code: f"%{code:02x}"), unquote),
    Encoding("percent_partly", _every_third(lambda code: f"%{code:02x}"), unquote),
    Encoding("percent_of_urls", lambda text: quote(text, safe="/"), unquote),
    Encoding("percent_twice", _twice(_PERCENT, _PERCENT), lambda text: unquote(unquote(text))),
    Encoding("form", quote_plus, unquote_plus),
    Encoding(
        "quoted_printable",
        lambda text: quopri.encodestring(text.encode(), quotetabs=True).decode(),
        lambda text: quopri.decodestring(text.encode("utf-8", "replace")).decode("latin-1"),
    ),
    Encoding("base64_0", _in_base64(0), _of_base64),
    Encoding("base64_1", _in_base64(1), _of_base64),
    Encoding("base64_2", _in_base64(2), _of_base64),
    Encoding("base64url_0", _in_base64(0, b"-_"), _of_base64),
    Encoding("base64url_1", _in_base64(1, b"-_"), _of_base64),
    Encoding("base64url_2", _in_base64(2, b"-_"), _of_base64),
    Encoding(
        "base64_without_padding",
        lambda text: b64encode(text.encode()).decode().rstrip("="),
        lambda text: _of_base64(text + "==="),
    ),
    Encoding("base64_in_lines", lambda text: "\r\n".join(wrap(_in_base64(1)(text), 12)), _of_base64),
    Encoding(
        "base64_of_utf16",
        lambda text: b64encode(text.encode("utf-16-le")).decode(),
        lambda text: _of_base64(text).replace("\0", ""),
    ),
    Encoding("hex", lambda text: text.encode().hex(), _of_hex),
    Encoding("hex_upper", lambda text: text.encode().hex().upper(), _of_hex),
    Encoding("hex_spaced", lambda text: text.encode().hex(" "), _of_hex),
    Encoding("html_in_percent", _twice(_HTML, _PERCENT), lambda text: unescape(unquote(text))),
    Encoding("percent_in_html", _twice(_PERCENT, _HTML), lambda text: unquote(unescape(text))),
    Encoding("unicode_in_percent", _twice(_UNICODE, _PERCENT), lambda text: _unescape(unquote(text))),
)
