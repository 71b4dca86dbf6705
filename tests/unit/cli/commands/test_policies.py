"""Text of a policy."""

import pytest

from gateway.cli.commands import policies


@pytest.mark.parametrize(
    ("origins", "shown"), [(None, "any"), ([], "none"), (["https://a.example"], "https://a.example")]
)
def test_no_origin_is_not_any_origin(origins: list[str] | None, shown: str) -> None:
    """Ours: a policy that permits no origin is not printed as one that permits all (ADM-1)."""
    lines = str(policies._describe({"http_origins": origins})).splitlines()  # pyright: ignore[reportPrivateUsage]

    assert lines[-1].split() == ["http", "origins", shown]
