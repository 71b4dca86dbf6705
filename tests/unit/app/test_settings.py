"""Permitted values of the environment."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.app.secrets import find_keys
from gateway.errors import BrokenSetting
from gateway.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine reaches these tests."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"GATEWAY_{name.upper()}", raising=False)


def test_lists_are_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: several values in one variable."""
    monkeypatch.setenv("GATEWAY_EGRESS_ALLOW", "127.0.0.1:9000, api.internal:80")

    assert load_settings().egress_allow == ("127.0.0.1:9000", "api.internal:80")


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("GATEWAY_PORT", "http", "GATEWAY_PORT"),
        ("GATEWAY_PROT", "1", "did you mean GATEWAY_PORT"),
        ("GATEWAY_OPERATOR_KEY", "short", "32 characters"),
        ("GATEWAY_SECRET_KEYS", "short", "32 characters"),
        ("GATEWAY_PUBLIC_URL", "ftp://x", "http or https"),
        ("GATEWAY_LOG_LEVEL", "loud", "GATEWAY_LOG_LEVEL"),
    ],
)
def test_a_broken_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, reported: str) -> None:
    """Ours: one line names the variable and the permitted values."""
    monkeypatch.setenv(name, value)

    with pytest.raises(BrokenSetting, match=reported) as caught:
        load_settings()
    assert "\n" not in caught.value.message


def test_a_public_address_needs_keys_of_its_own() -> None:
    """Ours: no default secret ever protects a reachable gateway (TEN-5)."""
    with pytest.raises(BrokenSetting, match="GATEWAY_SECRET_KEYS and GATEWAY_OPERATOR_KEY"):
        load_settings(host="0.0.0.0").check_exposure()


def test_a_configured_database_needs_configured_secret_keys() -> None:
    """Ours: replicas that share a database share the keys that seal its secrets."""
    with pytest.raises(BrokenSetting, match="GATEWAY_SECRET_KEYS"):
        load_settings(database_url="postgresql://x/y", redis_url="redis://x").check_exposure()


def test_commands_that_do_not_serve_need_no_keys() -> None:
    """Ours: `gateway migrate` runs where the keys are not, also in an image that would listen everywhere."""
    settings = load_settings(host="0.0.0.0", database_url="postgresql://x/y")

    assert settings.secret_keys == ()


def test_fewer_than_forty_six_settings() -> None:
    """Ours: the gateway can be configured by a person; what differs per tenant is a ceiling or a policy."""
    assert len(Settings.model_fields) < 46


def test_generated_keys_are_kept_and_private(tmp_path: Path) -> None:
    """Ours: a second start finds the keys of the first; no other account can read them."""
    settings = load_settings(data_dir=tmp_path / "gateway")

    first, second = find_keys(settings), find_keys(settings)

    assert (first.operator_key_is_new, second.operator_key_is_new) == (True, False)
    assert (first.operator_key, first.secret_keys) == (second.operator_key, second.secret_keys)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "gateway").iterdir()} == {0o600}
    assert first.operator_key not in repr(first)


def test_processes_that_start_together_use_the_same_keys(tmp_path: Path) -> None:
    """Ours: a key file appears with its content, so no process reads an empty key."""
    settings = load_settings(data_dir=tmp_path / "gateway")
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(find_keys, [settings] * 64))

    assert len({(keys.operator_key, keys.secret_keys) for keys in found}) == 1
    assert sum(keys.operator_key_is_new for keys in found) == 1
    assert sorted(path.name for path in (tmp_path / "gateway").iterdir()) == ["operator-key", "secret-keys"]


@pytest.mark.parametrize("name", ["operator-key", "secret-keys"])
def test_an_empty_key_file_stops_the_start(tmp_path: Path, name: str) -> None:
    """Ours: a key that was lost is not replaced by an empty one."""
    settings = load_settings(data_dir=tmp_path)
    find_keys(settings)
    (tmp_path / name).write_text("\n")

    with pytest.raises(BrokenSetting, match=f"{name} is empty"):
        find_keys(settings)


def test_a_data_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Ours: the line names the path that cannot be used."""
    (tmp_path / "file").write_text("")

    with pytest.raises(BrokenSetting, match="GATEWAY_DATA_DIR"):
        find_keys(load_settings(data_dir=tmp_path / "file" / "below"))
