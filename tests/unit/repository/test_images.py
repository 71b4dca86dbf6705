"""Requirements for the images of a release."""

from tests.images import PINS, complaints, read_pins

_DIGEST = f"sha256:{'ab' * 32}"


def test_a_tag_alone_is_refused() -> None:
    """Ours: a tag is another image tomorrow; the digest of today is shown where a registry can be asked (ISO-6)."""
    pins = {"REDIS_IMAGE": "redis:8-bookworm"}

    assert list(complaints(pins, None)) == ["REDIS_IMAGE: redis:8-bookworm has no digest"]
    assert list(complaints(pins, lambda _: _DIGEST)) == [
        f"REDIS_IMAGE: redis:8-bookworm has no digest; today it is redis:8-bookworm@{_DIGEST}"
    ]
    for broken in (f"redis@{_DIGEST}", "redis:8@sha256:12", f"redis:8@{_DIGEST}0", ""):
        assert len(list(complaints({"REDIS_IMAGE": broken}, None))) == 1


def test_a_digest_is_compared_with_the_registry() -> None:
    """Ours: a pin that was made up, or that the tag has left, is found."""
    pins = {"REDIS_IMAGE": f"redis:8-bookworm@{_DIGEST}"}

    assert list(complaints(pins, None)) == list(complaints(pins, lambda _: _DIGEST)) == []
    assert len(list(complaints(pins, lambda _: f"sha256:{'0' * 64}"))) == 1
    assert len(list(complaints(pins, lambda _: None))) == 1


def test_every_image_that_is_not_ours_is_in_the_file() -> None:
    """Ours: one place names them all."""
    assert read_pins(PINS).keys() == {"PYTHON_IMAGE", "POSTGRES_IMAGE", "REDIS_IMAGE", "CADDY_IMAGE"}
