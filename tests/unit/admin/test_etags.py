"""If-Match headers and the versions they allow."""

import pytest

from gateway.admin.etags import read_expected, write_tag
from gateway.errors import BadInput


def test_a_tag_that_was_written_is_read_back() -> None:
    """RFC 9110: the value of ETag is the one that If-Match names."""
    assert read_expected(write_tag("key_1.2")) == frozenset({"key_1.2"})


def test_no_header_demands_nothing() -> None:
    """Ours: If-Match is never required."""
    assert read_expected(None) is None


def test_a_star_allows_any_version() -> None:
    """RFC 9110: `*` matches whatever exists."""
    assert read_expected(" * ") == frozenset({"*"})


def test_a_list_allows_each_of_its_tags_but_no_weak_one() -> None:
    """RFC 9110: If-Match compares strongly, so a weak tag never matches."""
    assert read_expected('"a", W/"b" ,"c,d"') == frozenset({"a", "c,d"})


@pytest.mark.parametrize("header", ["", "abc", '"a" "b"', '"a",', '"a', '"a", *', '"a\x7f"', '"a",' * 5000])
def test_a_malformed_list_of_tags_is_refused(header: str) -> None:
    """Ours: a precondition that cannot be read is never passed over."""
    with pytest.raises(BadInput):
        read_expected(header)
