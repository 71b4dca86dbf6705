"""Containment of paths by their text."""

import pytest

from gateway.definitions.policy.limits import MAX_PATH_LENGTH
from gateway.definitions.policy.paths import is_inside, is_root


@pytest.mark.parametrize(
    "path", ["/tmp", "/tmp/", "/tmp/a", "/tmp//a", "/tmp/./a", "/tmp/a b", "/tmp/a%20b", "/tmp/100%"]
)
def test_a_path_below_the_folder_is_inside(path: str) -> None:
    """Ours: spelling variants without effect do not change the outcome (SAF-5)."""
    assert is_inside(path, "/tmp") is True


@pytest.mark.parametrize("path", ["/", "/etc/passwd", "/tmpfile", "/tm", "/var/tmp", "/a%20b"])
def test_a_path_elsewhere_is_outside(path: str) -> None:
    """Ours: a folder contains whole segments, not texts that begin alike (SAF-5)."""
    assert is_inside(path, "/tmp") is False


@pytest.mark.parametrize(
    "path",
    [
        "",
        "tmp/a",
        "~/a",
        "file:///tmp/a",
        "//tmp/a",
        "/tmp/..",
        "/tmp/../etc",
        "/tmp/a/../b",
        "/tmp/.../a",
        "/tmp/.. /etc",
        "/tmp/..;/etc",
        "/tmp/%2e%2e/etc",
        "/tmp/%252e%252e/etc",
        "/tmp/%25252525252e/etc",
        "/tmp%2f..%2fetc",
        "/tmp\\..\\etc",
        "/tmp/．．/etc",
        "/tmp/\u2025/etc",
        "/tmp／../etc",
        "/tmp/a\0",
        "/tmp/a%00.txt",
        "/tmp/%c0%ae%c0%ae/etc",
        "/tmp/a\n",
        "/tmp/\u202ea",
        "/TMP/a",
        "/tmp?a",
        "/tmp;a/b",
        "/tmp/a%3f/%2e%2e/%2e%2e/etc",
        "/tmp/" + "a" * MAX_PATH_LENGTH,
        "/tmp/\ud800",
    ],
)
def test_a_path_that_readers_may_read_differently_is_not_decidable(path: str) -> None:
    """Ours: `..`, encodings, other separators, letter case and URL parts never count as inside or outside (SAF-5)."""
    assert is_inside(path, "/tmp") is None


def test_the_root_contains_every_readable_path() -> None:
    """Ours: a rule about `/` is about every absolute path (SAF-5)."""
    assert is_inside("/etc/passwd", "/") is True
    assert is_inside("/etc/../passwd", "/") is None


@pytest.mark.parametrize(
    ("folder", "is_usable"),
    [("/", True), ("/tmp", True), ("/tmp/", True), ("/srv/é", True)]
    + [
        (text, False) for text in ("", "tmp", "/a/../b", "/a//b", "//a", "/a%20", "/a?", "/a\\b", "/a\0", "/a;b", "/．")
    ],
)
def test_only_a_normalised_folder_can_be_compared_with(folder: str, *, is_usable: bool) -> None:
    """Ours: the folder of a condition has one reading (SAF-5)."""
    assert is_root(folder) is is_usable
