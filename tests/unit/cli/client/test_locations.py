"""Search of the command line for the gateway and for a credential."""

from pathlib import Path

import pytest

from gateway.app.local.loopback import is_loopback
from gateway.cli.client.locations import check_key, check_url, find_admin_key, mcp_url
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import read_document, source_name

_HERE = "http://127.0.0.1:8080"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GATEWAY_OPERATOR_KEY", "GATEWAY_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with an operator key."""
    (tmp_path / "operator-key").write_text("from-file\n")
    return tmp_path


def test_a_given_key_wins_over_the_environment_over_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the closest word counts."""
    assert find_admin_key(_HERE, given=None, folder=folder) == "from-file"
    monkeypatch.setenv("GATEWAY_KEY", "tenant-key")
    assert find_admin_key(_HERE, given=None, folder=folder) == "from-file"
    monkeypatch.setenv("GATEWAY_OPERATOR_KEY", "from-environment")
    assert find_admin_key(_HERE, given=None, folder=folder) == "from-environment"
    assert find_admin_key(_HERE, given="given", folder=folder) == "given"


def test_the_operator_key_file_is_for_this_machine_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a mistyped URL never gets the operator key that lies in a folder."""
    with pytest.raises(Failure, match="GATEWAY_OPERATOR_KEY") as caught:
        find_admin_key("https://gateway.example.com", given=None, folder=folder)
    assert caught.value.exit_code is ExitCode.DENIED
    monkeypatch.setenv("GATEWAY_KEY", "tenant-key")
    assert find_admin_key("https://gateway.example.com", given=None, folder=folder) == "tenant-key"


@pytest.mark.parametrize("url", ["http://localhost", "http://127.9.9.9:1", "https://[::1]:8", "http://a.localhost"])
def test_loopback_has_several_names(url: str) -> None:
    """Ours: this machine is this machine."""
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8080", "ftp://x", "http://", "http://x:99999", "http://x:0", "http://["]
)
def test_a_url_that_is_none_is_wrong_usage(url: str) -> None:
    """Ours: it is reported before anything is sent."""
    with pytest.raises(Failure) as caught:
        check_url(url)
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("key", ["", "a b", "a\nb", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    """Ours: no header is broken, and the key is not repeated."""
    with pytest.raises(Failure) as caught:
        check_key(key)
    assert key == "" or key not in caught.value.message


def test_urls_are_joined_without_a_doubled_slash() -> None:
    """Ours: a trailing slash in GATEWAY_URL is harmless."""
    assert mcp_url(check_url("http://x/"), "acme") == "http://x/t/acme/mcp"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("petstore-v3.yaml", "petstore-v3"),
        ("/x/My API (2).json", "my-api-2"),
        ("https://example.com/openapi.json?x=1", "openapi"),
        ("https://example.com/", "api"),
        ("-", "api"),
        ("图书馆.yaml", "api"),
    ],
)
def test_the_source_is_named_after_the_given_file(spec: str, name: str) -> None:
    """Ours: the name fits the gateway and every client."""
    assert source_name(spec) == name


@pytest.mark.parametrize(
    ("raw", "size", "reason"), [(b"\xff\xfe{}", 4, "UTF-8"), (b" \n", 2, "empty"), (b"x", 32 * 1024 * 1024 + 1, "MiB")]
)
def test_a_file_that_can_be_no_document_is_refused_here(tmp_path: Path, raw: bytes, size: int, reason: str) -> None:
    """Ours: nothing useless is sent (OAS-1)."""
    path = tmp_path / "spec"
    path.write_bytes(raw.ljust(size, b"x"))

    with pytest.raises(Failure, match=reason):
        read_document(str(path))


def test_a_file_is_read_and_a_url_left_to_the_gateway(tmp_path: Path) -> None:
    """Ours: only the gateway's guarded door fetches (OAS-1)."""
    path = tmp_path / "spec.yaml"
    path.write_bytes(b"\xef\xbb\xbfopenapi: 3.1.0\n")

    assert read_document(str(path)).fields() == {"document": "openapi: 3.1.0\n"}
    assert read_document("HTTPS://example.com/x").fields() == {"url": "HTTPS://example.com/x"}
    with pytest.raises(Failure, match="cannot read") as caught:
        read_document(str(tmp_path))
    assert caught.value.exit_code is ExitCode.USAGE
