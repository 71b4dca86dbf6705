"""Secrets in files, where containers have them."""

from pathlib import Path

import pytest

from gateway.cli.client.locations import find_admin_key
from gateway.cli.failures import Failure
from gateway.errors import BrokenSetting
from gateway.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings, load_settings

LONG = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the machine reaches these tests."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"{PREFIX}{name.upper()}", raising=False)
        monkeypatch.delenv(f"{PREFIX}{name.upper()}{FILE_SUFFIX}", raising=False)


def test_a_secret_is_read_from_the_file_that_its_variable_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: `…_FILE` holds a path; the line end that editors leave does not count."""
    (tmp_path / "url").write_text("redis://:pw@redis:6379/0\n")
    monkeypatch.setenv("GATEWAY_REDIS_URL_FILE", str(tmp_path / "url"))

    found = load_settings().redis_url

    assert found is not None
    assert found.get_secret_value() == "redis://:pw@redis:6379/0"


def test_a_secret_is_read_again_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the present content of the file, as the setting requires it; a forbidden value is an error (OPR-2)."""
    file = tmp_path / "keys"
    file.write_text(f"{LONG}-old\n")
    monkeypatch.setenv("GATEWAY_OPERATOR_KEY_FILE", str(file))
    settings = load_settings()
    assert (settings.file_of("operator_key"), settings.file_of("redis_url")) == (file, None)
    assert load_settings(operator_key=LONG).file_of("operator_key") is None

    file.write_text(f"{LONG}-new\n{LONG}-old\n")
    assert settings.reread("operator_key") == f"{LONG}-new,{LONG}-old"
    for text in ("short", "", None):
        file.unlink()
        if text is not None:
            file.write_text(text)
        with pytest.raises(BrokenSetting):
            settings.reread("operator_key")
        file.touch()


def test_keys_have_lines_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a new key is put above the old one."""
    (tmp_path / "keys").write_text(f"{LONG}-new\n{LONG}-old\n")
    monkeypatch.setenv("GATEWAY_SECRET_KEYS_FILE", str(tmp_path / "keys"))

    assert [key.get_secret_value() for key in load_settings().secret_keys] == [f"{LONG}-new", f"{LONG}-old"]


@pytest.mark.parametrize(
    ("variables", "reported"),
    [
        ({"GATEWAY_OPERATOR_KEY_FILE": "/nowhere/key"}, "GATEWAY_OPERATOR_KEY_FILE: /nowhere/key cannot be read"),
        ({"GATEWAY_OPERATOR_KEY_FILE": "/dev/null"}, "GATEWAY_OPERATOR_KEY_FILE: /dev/null is empty"),
        ({"GATEWAY_OPERATOR_KEY_FILE": "/dev/null", "GATEWAY_OPERATOR_KEY": LONG}, "are both set"),
        ({"GATEWAY_PORT_FILE": "/dev/null"}, "unknown variable GATEWAY_PORT_FILE"),
        ({"GATEWAY_METRICS_KEY": "short"}, "GATEWAY_METRICS_KEY: must have at least 32 characters"),
        ({"GATEWAY_TRUSTED_PROXIES": "proxy.internal"}, "GATEWAY_TRUSTED_PROXIES"),
        ({"GATEWAY_NOTICE_S": "-1"}, "GATEWAY_NOTICE_S"),
    ],
)
def test_a_broken_one_is_named(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], reported: str) -> None:
    """Ours: one line names the variable and its fault."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(BrokenSetting) as caught:
        load_settings()
    assert reported in caught.value.message
    assert "\n" not in caught.value.message


def test_every_secret_may_be_in_a_file_and_is_not_shown() -> None:
    """Ours: the list of what may is the list of what is secret (TEN-4)."""
    secret = {name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)}

    assert secret == set(SECRETS)


def test_the_command_line_finds_the_operators_key_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: inside a container commands work without any key in the environment."""
    (tmp_path / "key").write_text(f"{LONG}\n")
    monkeypatch.setenv("GATEWAY_OPERATOR_KEY_FILE", str(tmp_path / "key"))

    assert find_admin_key("https://gw.example.com", given=None, folder=tmp_path) == LONG
    monkeypatch.setenv("GATEWAY_OPERATOR_KEY_FILE", "/nowhere/key")
    with pytest.raises(Failure, match="GATEWAY_OPERATOR_KEY_FILE"):
        find_admin_key("https://gw.example.com", given=None, folder=tmp_path)
