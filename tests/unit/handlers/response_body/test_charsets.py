"""Decoding of bytes to text."""

import pytest

from gateway.handlers.response_body.charsets import declared_charset, decode_text


@pytest.mark.parametrize(
    ("body", "parameters", "text"),
    [
        ("é中".encode(), "", "é中"),
        ("é中".encode(), "charset=utf-8", "é中"),
        ("é".encode("latin-1"), "charset=iso-8859-1", "é"),
        ("é".encode("latin-1"), ' boundary=x; charset="ISO-8859-1"', "é"),
        ("ш".encode("koi8-r"), "charset=KOI8-R", "ш"),
        ("日本".encode("shift_jis"), "charset=Shift_JIS", "日本"),
        ("日本".encode("euc_jp"), "charset=euc-jp", "日本"),
        ("中".encode("gb18030"), "charset=gb18030", "中"),
        ("€".encode("cp1252"), "charset=windows-1252", "€"),
        (b"\xef\xbb\xbfa", "", "a"),
        ("a\u4e2d".encode("utf-16"), "", "a中"),
        ("naïve café, s'il vous plaît".encode("latin-1"), "", "naïve café, s'il vous plaît"),
        ("é".encode()[:1], "", "\ufffd"),
        (b"\xff\xfe\x00\xd8", "charset=utf-16", "\ufffd"),
        (b"caf\xe9 noir", "charset=utf-8", "caf\ufffd noir"),
    ],
)
def test_text_is_read_as_it_was_meant(body: bytes, parameters: str, text: str) -> None:
    """RFC 9110: the charset parameter; a byte order mark overrides it, and without both it is UTF-8."""
    assert decode_text(body, parameters) == text


@pytest.mark.parametrize(
    "name", ["punycode", "idna", "unicode_escape", "utf-7", "base64", "zip", "rot13", "hex", "undefined", "mbcs", "\0"]
)
def test_a_codec_that_is_no_charset_is_not_used(name: str) -> None:
    """Ours: an upstream cannot choose a decoder that is slow or does something else."""
    assert declared_charset(f"charset={name}") is None
    assert decode_text(b"plain", f"charset={name}") == "plain"


def test_an_xml_document_may_declare_its_charset() -> None:
    """XML: the encoding declaration, where the content type has no charset."""
    body = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1")

    assert "é" in decode_text(body, "", is_xml=True)
