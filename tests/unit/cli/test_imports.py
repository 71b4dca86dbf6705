"""How import options and credentials are read from the command line."""

from pathlib import Path

import pytest

from gateway.cli.exits import Exit
from gateway.cli.failures import Failure
from gateway.cli.imports import import_fields, parse_credentials


def test_keys_are_one_text_and_logins_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a token with a colon stays whole, and a password may hold one."""
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("SOME_LOGIN", "user:pass:word")

    found = parse_credentials(("a=x:y=z", f"b=@{tmp_path / 'token'}"), logins=("c=env:SOME_LOGIN", "d=:only-password"))

    assert found == {"a": "x:y=z", "b": "from-file", "c": ["user", "pass:word"], "d": ["", "only-password"]}


@pytest.mark.parametrize(
    ("given", "logins"),
    [
        (("novalue",), ()),
        (("a=",), ()),
        (("=s3cret",), ()),
        (("a=s3cret", "a=s3cret"), ()),
        ((), ("a=s3cret",)),
        ((), ("a=s3cret:",)),
        (("a=@/nowhere/s3cret.txt",), ()),
        (("a=env:NOT_SET_ANYWHERE",), ()),
    ],
)
def test_a_malformed_credential_is_refused_without_repeating_it(
    given: tuple[str, ...], logins: tuple[str, ...]
) -> None:
    """Ours: a secret never stands in an error."""
    with pytest.raises(Failure) as caught:
        parse_credentials(given, logins=logins)
    assert caught.value.exit_code is Exit.USAGE
    assert "s3cret" not in caught.value.message.replace("/nowhere/s3cret.txt", "")


def test_only_what_was_given_is_sent() -> None:
    """Ours: the gateway's defaults stay the gateway's."""
    assert import_fields({"base_url": None, "prefix": "p_", "expose": None, "credentials": (), "logins": ()}) == {
        "prefix": "p_"
    }
