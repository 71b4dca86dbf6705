"""Import options and credentials on the command line."""

import json
from pathlib import Path

import httpx
import pytest

from gateway.cli.client.admin_api import AdminApi
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import DocumentArgument
from gateway.cli.input.import_options import ImportArguments
from gateway.cli.input.import_request import Upload, import_fields, upload
from gateway.cli.input.secrets import parse_credentials
from gateway.cli.output.progress import Progress

_NOTHING: ImportArguments = {
    "member_base_url": None,
    "member_prefix": None,
    "member_expose": None,
    "member_output_schemas": None,
    "credentials": (),
    "logins": (),
    "include_operation": (),
    "include_method": (),
    "include_path": (),
    "include_tag": (),
    "exclude_operation": (),
    "exclude_method": (),
    "exclude_path": (),
    "exclude_tag": (),
    "all_operations": False,
}


def test_keys_are_one_text_and_logins_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a token with a colon stays whole, and a password may hold one."""
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("SOME_LOGIN", "user:pass:word")

    found = parse_credentials(("a=x:y=z", f"b=@{tmp_path / 'token'}"), logins=("c=env:SOME_LOGIN", "d=:only-password"))

    assert found == {"a": "x:y=z", "b": "from-file", "c": ["user", "pass:word"], "d": ["", "only-password"]}


def test_a_reference_is_written_in_the_option_itself(tmp_path: Path) -> None:
    """Ours: a secret in a file that looks like a reference is a secret (PRG-3)."""
    (tmp_path / "token").write_text("credential:not-a-name")

    found = parse_credentials(("a=credential:hr", f"b=@{tmp_path / 'token'}"), logins=())

    assert found == {"a": {"credential": "hr"}, "b": "credential:not-a-name"}
    with pytest.raises(Failure, match="given twice"):
        parse_credentials(("a=x", "a=credential:hr"), logins=())


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
    """Ours: an error never contains a secret."""
    with pytest.raises(Failure) as caught:
        parse_credentials(given, logins=logins)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "s3cret" not in caught.value.message.replace("/nowhere/s3cret.txt", "")


def test_only_given_options_are_sent() -> None:
    """Ours: the gateway's defaults stay the gateway's."""
    assert import_fields({**_NOTHING, "member_prefix": "p_"}) == {"prefix": "p_"}


def test_includes_narrow_and_excludes_add_up() -> None:
    """Ours: an operation has to fit every kind of --include option, and one kind of --exclude is enough."""
    given: ImportArguments = {
        **_NOTHING,
        "include_tag": ("pets", "shops"),
        "include_method": ("GET",),
        "exclude_path": ("/admin/*",),
        "exclude_operation": ("*Secret*", "x"),
        "member_output_schemas": False,
    }

    assert import_fields(given) == {
        "output_schemas": False,
        "include": [{"methods": ["GET"], "tags": ["pets", "shops"]}],
        "exclude": [{"operation_ids": ["*Secret*", "x"]}, {"paths": ["/admin/*"]}],
    }
    assert import_fields({**_NOTHING, "all_operations": True}) == {"include": [], "exclude": []}
    assert import_fields({**_NOTHING, "all_operations": True, "exclude_tag": ("a",)}) == {
        "include": [],
        "exclude": [{"tags": ["a"]}],
    }


@pytest.mark.parametrize(
    ("is_waiting", "status", "retry", "is_sent_again"),
    [(True, 429, "0", True), (False, 429, "1", False), (True, 429, "301", False), (True, 503, "0", False)],
)
def test_an_import_that_comes_too_early_is_sent_again_where_it_may_wait(
    *, is_waiting: bool, status: int, retry: str, is_sent_again: bool
) -> None:
    """RFC 6585: `--wait` follows `Retry-After` of the rate limit, and sends the whole document again (ADM-1)."""
    bodies: list[object] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.read()))
        if len(bodies) == 1:
            return httpx.Response(status, json={"detail": "too many"}, headers={"Retry-After": retry})
        return httpx.Response(201, json={"name": "pets"})

    request = Upload(
        method="POST",
        path="/x",
        body={"name": "pets"},
        document=DocumentArgument(name="-", text="{}"),
        is_waiting=is_waiting,
    )
    with AdminApi("http://127.0.0.1:1", "secret", transport=httpx.MockTransport(answer)) as admin:
        progress = Progress(is_silent=True)
        if is_sent_again:
            assert upload(admin, progress, request) == {"name": "pets"}
        else:
            with pytest.raises(Failure, match="too many; retry in"):
                upload(admin, progress, request)

    assert bodies == [{"name": "pets", "document": "{}"}] * (2 if is_sent_again else 1)
