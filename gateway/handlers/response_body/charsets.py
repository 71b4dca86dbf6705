"""Decoding of text bodies in their declared charset, if it is known to be safe to decode."""

import codecs
import re

_KNOWN = re.compile(
    r"utf-8(?:-sig)?|ascii|utf-(?:16|32)(?:-[bl]e)?|iso8859-\d{1,2}|cp(?:125\d|437|85\d|866|932|949|950)|koi8-[ru]|"
    r"mac-roman|shift_jis(?:_2004|x0213)?|euc_(?:jp|kr)|gb(?:2312|k|18030)|big5(?:hkscs)?|iso2022_(?:jp|kr)|tis-620"
)
"""Python's names of the charsets. Some other codecs of Python take time quadratic in the text's length."""
_DECLARATION = re.compile(rb"""^\s*<\?xml[^>]{0,100}?\bencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_FALLBACK = "cp1252"
_HIGH = bytes(range(0x80, 0x100))


def decode_text(body: bytes, parameters: str, *, is_xml: bool = False) -> str:
    """Decode by byte order mark, declared charset, XML declaration or UTF-8; nearly ASCII text may be cp1252."""
    charset = _marked(body) or declared_charset(parameters) or (_xml_charset(body) if is_xml else None)
    if charset is not None:
        return body.decode(charset, "replace")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        if error.start >= len(body) - 3:  # cut inside a character
            return body.decode("utf-8", "replace")
        return body.decode(_FALLBACK if _is_nearly_ascii(body) else "utf-8", "replace")


def declared_charset(parameters: str) -> str | None:
    """Return the charset in the parameters of a content type, by Python's name; None if there is no known one."""
    for part in parameters.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return _named(value.strip().strip("\"'"))
    return None


def _marked(body: bytes) -> str | None:
    return next((charset for mark, charset in _MARKS if body.startswith(mark)), None)


def _xml_charset(body: bytes) -> str | None:
    found = _DECLARATION.match(body[:200])
    return _named(found[1].decode("ascii")) if found else None


def _named(text: str) -> str | None:
    try:
        name = codecs.lookup(text).name
    except (LookupError, ValueError):
        return None
    return name if _KNOWN.fullmatch(name) else None  # guard: charsets-only


def _is_nearly_ascii(body: bytes) -> bool:
    """True if this is text with a few accents in a legacy charset, and not UTF-8 with an error."""
    head = body[:65536]
    high = len(head) - len(head.translate(None, _HIGH))
    return high * 4 < len(head) and b"\0" not in head
