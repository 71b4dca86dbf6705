"""The header fields of a request."""

from gateway.web.headers import HeaderIndex, headers_of


def test_the_first_of_repeated_fields_counts_and_all_are_measured() -> None:
    """Ours: repeated headers are known, and the number and length of all fields are counted."""
    fields = HeaderIndex([(b"a", b"1"), (b"b", b"22"), (b"a", b"333"), (b"c", b"")])

    assert (fields.get(b"a"), fields.get(b"b"), fields.get(b"c"), fields.get(b"d")) == (b"1", b"22", b"", None)
    assert fields.repeated == {b"a"}
    assert (fields.count, len(fields.text)) == (4, 10)
    assert HeaderIndex([]).repeated == frozenset()


def test_they_are_read_once() -> None:
    """Ours: a second read returns the first result."""
    scope = {"headers": [(b"a", b"1")]}

    assert headers_of(scope) is headers_of(scope)
