"""The example's document and its service agree."""

import re
import struct
import zlib
from pathlib import Path

import pytest
import yaml
from starlette.routing import Route

from examples.library.picture import draw_png
from examples.library.upstream import Library, Refused, build_upstream

_DOCUMENT = Path(__file__).parents[3] / "examples" / "library" / "openapi.yaml"
_METHODS = {"get", "put", "post", "delete", "patch"}


def test_every_route_is_documented_and_every_operation_served() -> None:
    """Ours: the example is no better on paper than it is."""
    paths = yaml.safe_load(_DOCUMENT.read_text())["paths"]
    documented = {(path, method.upper()) for path, item in paths.items() for method in item if method in _METHODS}
    routes = [route for route in build_upstream(Library()).routes if isinstance(route, Route)]
    served = {(route.path, method) for route in routes for method in (route.methods or ()) if method != "HEAD"}

    assert served == documented


def test_the_example_has_a_get_without_arguments() -> None:
    """Ours: the first call of a newcomer needs nothing but a name."""
    operation = yaml.safe_load(_DOCUMENT.read_text())["paths"]["/opening-hours"]["get"]

    assert "parameters" not in operation
    assert "requestBody" not in operation


def test_every_operation_has_a_name_and_a_summary() -> None:
    """Ours: each tool of the example reads well in a list."""
    paths = yaml.safe_load(_DOCUMENT.read_text())["paths"]
    operations = [item[method] for item in paths.values() for method in item if method in _METHODS]

    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z]{3,64}", name) for name in names)
    assert all(operation["summary"].endswith(".") for operation in operations)


def test_a_drawn_picture_is_a_png() -> None:
    """RFC 2083: signature, header, checksums and pixels are consistent."""
    picture = draw_png(3, 2, lambda x, y: (x, y, 255))

    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    rest, chunks = picture[8:], dict[bytes, bytes]()
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, body, checksum = rest[4:8], rest[8 : 8 + length], rest[8 + length : 12 + length]
        assert struct.unpack(">I", checksum) == (zlib.crc32(kind + body),)
        chunks[kind], rest = body, rest[12 + length :]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (3, 2)
    assert zlib.decompress(chunks[b"IDAT"]) == b"\0\0\0\xff\1\0\xff\2\0\xff" + b"\0\0\1\xff\1\1\xff\2\1\xff"


def test_a_lent_book_stays_until_it_is_back() -> None:
    """Ours: the example's rules hold, so that its errors can be seen."""
    library = Library()
    library.keep(library.find(1).__class__(number=1, title="t", author="a", lent_to="r"))

    with pytest.raises(Refused, match="come back first"):
        library.remove(1)
