"""Tags of operations, by which profiles select."""

from typing import Any

import pytest

from tests.support.openapi import only, operation


@pytest.mark.parametrize(
    ("reported", "kept"),
    [
        (["b", "a", "b"], ("b", "a")),
        ([" pets\x00 ", "", "\u200b", 7, None, {"name": "x"}], ("pets",)),
        ("pets", ()),
        ({"a": 1}, ()),
        (["x" * 500], ("x" * 99 + "…",)),
        ([str(number) for number in range(200)], tuple(str(number) for number in range(50))),
    ],
)
def test_tags_are_kept_as_far_as_they_can_be_read(reported: Any, kept: tuple[str, ...]) -> None:
    """Ours: in the document's order, each once, cleaned and bounded; what is no tag is none (CAP-1)."""
    assert only(operation({"tags": reported})).tags == kept
