"""Hostile manifests and plans: Files of a foreign folder that make the command line read, send, print or wait."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.client.admin_context import AdminContext
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.limits import MAX_FILE_BYTES
from gateway.cli.manifests.documents import DocumentReader, measure
from gateway.cli.manifests.files import FileReader, ManifestText
from gateway.cli.manifests.limits import MAX_SECRET_BYTES
from gateway.cli.manifests.local_secrets import FORM, LocalSecret, SecretValues, find_secret
from gateway.cli.manifests.manifest import ManifestReader
from gateway.cli.manifests.places import ManifestFaults, Place
from gateway.cli.manifests.plan_file import new_plan, read_plan
from gateway.cli.manifests.source_documents import exported
from gateway.cli.manifests.tenant_request import Permissions, TenantRequest, requests_for
from gateway.errors import Fault
from gateway.openapi.document.limits import MAX_DOCUMENT_BYTES
from tests.unit.cli.manifests.reading import PROFILE, faults_of, read, write

_HEAD = PROFILE.format(name="a")
_SECRET = "s3cret-value-of-the-tests"


def _documents(text: str, **limits: int) -> list[Fault]:
    faults = ManifestFaults()
    place = Place(file="a.yaml")
    list(DocumentReader(faults=faults, **limits).read([ManifestText(place=place, text=text, is_found=False)]))
    return faults.found


def test_aliases_count_as_written_out() -> None:
    """An attack: ten levels of nine aliases each are 3 billion values in 400 bytes (decision 29)."""
    bomb = "a: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"b{n}: &a{n + 1} [{','.join([f'*a{n}'] * 9)}]\n" for n in range(10)
    )

    [fault] = _documents(_HEAD + bomb)

    assert "more than" in fault.reason


def test_aliases_of_a_long_text_count_as_written_out() -> None:
    """An attack: 10,000 aliases of a text of 1 MB are few values, but a request of 10 GB."""
    text = f"{_HEAD}description: &long {'x' * 1_000_000}\ninclude: [{','.join(['*long'] * 10_000)}]\n"

    [fault] = _documents(text)

    assert "too much text" in fault.reason


def test_a_value_of_many_documents_is_counted_together() -> None:
    """An attack: each document is small, all together are not."""
    for text in ("---\n".join(["a: [1, 2, 3]\n"] * 30), json.dumps([{"a": [1, 2, 3]}] * 30)):
        faults = _documents(text, most_values=100)

        assert [one.pointer for one in faults] == [
            f"a.yaml, document {number}" for number in range(21, 31)
        ]  # 5 values each


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{_HEAD}description: &a [*a]\n", "no anchor"),
        (f"{_HEAD}include: {'[' * 100}{']' * 100}\n", "nested"),
        ('{"include": ' + "[" * 100 + "]" * 100 + "}", "nested"),
        ('{"include": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
        (f"{_HEAD}description: !!python/object/apply:os.system [id]\n", "tag"),
        ('{"kind": "profile", "kind": "policy"}', "occurs twice"),
        (f"{_HEAD}include: []\nexclude: [{{names: [a], tags: [b], names: [c]}}]\n", "the key 'names' occurs twice"),
        (f"{_HEAD}description: \x00\n", ""),
    ],
)
def test_documents_are_values_and_nothing_else(text: str, reason: str) -> None:
    """An attack: cycles, depth, tags and repeated keys are faults of their document (decision 29)."""
    faults = _documents(text)

    assert faults
    assert all(reason in fault.reason for fault in faults)


def test_the_same_keys_in_different_mappings_are_distinct() -> None:
    """Ours: a key is repeated within one mapping only, and mappings may be merged several times."""
    text = "a: &a {x: 1}\nb: &b {x: 1, y: [{x: 1}, {x: 1}]}\nc: {<<: *a, <<: *b, x: 1}\nd: *a\n? x\n: *a\n"

    assert _documents(text) == []


def test_documents_are_bounded() -> None:
    """An attack: markers alone are documents; a million of them take no time."""
    faults = _documents("a\n---\n" * 100_000, most_documents=10)

    assert faults[-1].reason == "more than 10 documents; later ones were not read"


def test_files_are_bounded(tmp_path: Path) -> None:
    """An attack: a file of 100 MB, a folder of many files, and a folder such as `/` are not read to their end."""
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    write(tmp_path, a_yaml=_HEAD, b_yaml=_HEAD, c_yaml=_HEAD)

    assert faults_of(tmp_path / "large.yaml") == [
        f"large.yaml: is too large; a file may have {MAX_FILE_BYTES:,} bytes, and all files 67,108,864"
    ]
    for limit, most, count, reason in (
        ("most_files", 2, 2, "more than 2 files"),
        ("most_entries", 3, 0, "more than 3 entries"),
        ("most_bytes", len(_HEAD) + 5, 1, "is too large"),
    ):
        faults = ManifestFaults()
        reader = FileReader(faults=faults, leaves_folder=False)
        setattr(reader, limit, most)
        assert len(list(reader.read([str(tmp_path)]))) == count
        assert reason in faults.found[0].reason


def test_links_do_not_leave_the_folder(tmp_path: Path) -> None:
    """An attack: a link in a repository names a file of the machine, or a folder that contains itself."""
    write(tmp_path / "outside", a_yaml=f"{_HEAD}{_SECRET}: 1\n")
    folder = write(tmp_path / "inside", b_yaml=_HEAD)
    (folder / "c.yaml").symlink_to(tmp_path / "outside" / "a.yaml")
    (folder / "d").symlink_to(folder)
    os.mkfifo(folder / "e.yaml")

    faults = faults_of(folder)

    assert [line.partition(": ")[2].partition(" of ")[0] for line in faults] == [
        "is a link to a folder, which is not followed; name the folder with -f",
        "is a link to a file outside",
        "is not a regular file",
    ]
    assert _SECRET not in str(faults)
    (folder / "d").unlink()
    (folder / "e.yaml").unlink()
    assert _SECRET in str(faults_of(folder, leaves_folder=True))


def test_a_document_names_no_other_tenant(tmp_path: Path) -> None:
    """An attack: in a folder that is applied to one tenant with the operator's key, a document names another one."""
    write(tmp_path, a_yaml=f"{_HEAD}tenant: victim\n", b_yaml=f"{_HEAD}tenant: [acme]\n")

    assert len(faults_of(tmp_path, tenant="acme")) == 2


def _find(folder: Path, value: object, *, leaves_folder: bool = False) -> LocalSecret:
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    place = Place(file="a.yaml", folder=folder / "sub", root=folder)
    return find_secret(value, place, "/value", leaves_folder=leaves_folder)


@pytest.mark.parametrize(
    "value",
    [
        _SECRET,
        [_SECRET],
        {"value": _SECRET},
        {"env": "A", "file": _SECRET},
        {"env": [_SECRET]},
        {"env": f"A={_SECRET}"},
        {"file": {}},
        {"file": f"{_SECRET}\0"},
        {"file": ""},
        {},
        7,
    ],
)
def test_a_manifest_holds_no_secret(tmp_path: Path, value: object) -> None:
    """Ours: a literal secret is a fault, and the message does not repeat it (CFG-4)."""
    with pytest.raises(ValueError, match="must be") as raised:
        _find(tmp_path, value)

    assert _SECRET not in str(raised.value)


@pytest.mark.parametrize("path", ["../../secret", "/etc/passwd", "../out/secret", "../link"])
def test_secrets_do_not_leave_the_folder(tmp_path: Path, path: str) -> None:
    """An attack: a manifest names a file of the machine, by its path or by a link."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_text(_SECRET)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)

    with pytest.raises(ValueError, match="leads out of"):
        _find(folder, {"file": path})

    assert _find(folder, {"file": path}, leaves_folder=True).file is not None


def _missing(path: Path) -> None:
    del path


def _large(path: Path) -> None:
    path.write_bytes(b"x" * (MAX_SECRET_BYTES + 1))


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


def _blank(path: Path) -> None:
    path.write_text(" \n")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_large, "at most 64 KiB"),
        (_pipe, "not a regular file"),
        (_device, "not a regular file"),
        (_binary, "not UTF-8"),
        (_blank, "is empty"),
        (_missing, "cannot be read"),
    ],
)
def test_a_secret_is_a_small_regular_file(tmp_path: Path, make: Callable[[Path], object], reason: str) -> None:
    """An attack: a pipe that waits forever, a device without an end, a large file (CFG-4)."""
    make(tmp_path / "secret")
    faults = ManifestFaults()

    SecretValues().read([_find(tmp_path, {"file": "../secret"}, leaves_folder=True)], faults)

    [fault] = faults.found
    assert reason in fault.reason


def test_messages_of_the_gateway_have_no_secret(tmp_path: Path) -> None:
    """Ours: a secret that the gateway repeats in a refusal is not printed (CFG-4)."""
    (tmp_path / "secret").write_text(f"{_SECRET}\n")
    values, faults = SecretValues(), ManifestFaults()
    secret = _find(tmp_path, {"file": "../secret"})
    values.read([secret], faults)

    refused = Failure(f"the value {_SECRET} is wrong", faults=[Fault(pointer=f"/{_SECRET}", reason=_SECRET)])
    failure = values.redacted(refused)

    assert faults.found == []
    assert values.fill({"value": secret}) == {"value": _SECRET}
    assert _SECRET not in f"{failure} {failure.message} {failure.faults} {secret} {values}"


def test_secret_parts_of_settings_are_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a null of responses is a secret; manifests and plans have its reference only (CFG-4)."""
    head = "apiVersion: gateway/v1\nkind: live-source\nname: a\ntype: mcp\nsettings:\n  argv: [program]\n  env: "
    write(
        tmp_path, a_yaml=f"{head}{{TOKEN: {_SECRET}}}\n", b_yaml=f"{head}{{TOKEN: {{env: TOKEN_OF_A}}, KEPT: null}}\n"
    )
    monkeypatch.setenv("TOKEN_OF_A", _SECRET)

    assert faults_of(tmp_path / "a.yaml") == [f"a.yaml: /settings/env/TOKEN: {FORM}"]
    [request] = requests_for(read(tmp_path / "b.yaml"), Permissions())
    new_plan([request]).write(tmp_path / "release.plan")
    [planned] = read_plan(tmp_path / "release.plan", leaves_folder=False).requests
    values, faults = SecretValues(), ManifestFaults()
    values.read([*request.secrets, *planned.secrets], faults)

    assert _SECRET not in (tmp_path / "release.plan").read_text()
    assert values.fill(planned.body) == values.fill(request.body)
    sent: Any = values.fill(planned.body)
    assert sent["objects"][0]["members"]["settings"]["env"] == {"TOKEN": _SECRET, "KEPT": None}
    assert SecretValues().fill(planned.body) != sent


def _plan(folder: Path, **change: object) -> Path:
    body: JsonObject = {"objects": [{"kind": "profile", "name": "a", "members": {}}]}
    path = folder / "release.plan"
    new_plan([TenantRequest(tenant="acme", body=body, places=[])]).write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    return path


_CHANGED_PLANS: list[tuple[JsonObject, str]] = [
    ({"expires_at": "2020-01-01T00:00:00+00:00"}, "has expired"),
    ({"expires_at": "2999-01-01T00:00:00+00:00"}, "has expired"),
    ({"expires_at": "2999-01-01T00:00:00"}, "is not a time"),
    ({"expires_at": [1]}, "is not a time"),
    ({"format": "gateway/plan/v9"}, "is not a plan in the format"),
    ({"tenants": []}, "has no requests"),
    ({"tenants": [{"tenant": "acme", "body": {"objects": [{"kind": "x", "members": {}}]}}]}, "known kind"),
    ({"tenants": [{"tenant": "acme", "body": {"objects": [{"kind": "profile"}]}}]}, "known kind"),
    ({"tenants": [{"tenant": "acme", "body": {"objects": [1]}}]}, "known kind"),
    ({"tenants": [{"tenant": ["acme"], "body": []}]}, "must have requests"),
]


@pytest.mark.parametrize(("change", "reason"), _CHANGED_PLANS)
def test_a_plan_is_checked_like_a_manifest(tmp_path: Path, change: JsonObject, reason: str) -> None:
    """An attack: a plan that expired, whose time was changed, or that was not made by the command (CFG-2)."""
    assert [one.tenant for one in read_plan(_plan(tmp_path), leaves_folder=False).requests] == ["acme"]

    with pytest.raises(Failure) as raised:
        read_plan(_plan(tmp_path, **change), leaves_folder=False)

    assert reason in f"{raised.value.message} {raised.value.faults}"


def test_a_plan_is_bounded(tmp_path: Path) -> None:
    """An attack: a plan of 100 MB is not read to its end."""
    path = tmp_path / "release.plan"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)

    with pytest.raises(Failure, match="has more than 64 MiB"):
        read_plan(path, leaves_folder=False)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Ours: no text makes the reader fail with anything but faults."""
    _read_any(text)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_NAMES = ("apiVersion", "kind", "name", "uri", "tenant", "moved", "include", "rules", "limits", "type", "value")


@given(st.dictionaries(st.sampled_from(_NAMES), st.sampled_from(["gateway/v1", "profile", "policy", "watch"]) | _JSON))
def test_any_members_are_read_or_refused(content: dict[str, object]) -> None:
    """Ours: members of any type, beside those that all manifests have, are faults or values."""
    _read_any(json.dumps(content))
    assert measure(content, values=10_000, text=10_000)[0] >= 1


def _read_any(text: str) -> None:
    faults = ManifestFaults()
    place = Place(file="a.yaml")
    documents = DocumentReader(faults=faults).read([ManifestText(place=place, text=text, is_found=False)])
    found = ManifestReader(faults=faults, tenant="acme", leaves_folder=False).read(documents)
    assert all(one.tenant == "acme" for one in found)


def _source(folder: Path, document: str) -> Path:
    path = folder / "source.yaml"
    path.write_text(f"apiVersion: gateway/v1\nkind: source\nname: a\ndocument: {document}\n")
    return path


def test_documents_of_sources_do_not_leave_the_folder(tmp_path: Path) -> None:
    """An attack: a manifest uploads a private file of the machine as a document, by a path or a link."""
    folder, outside = tmp_path / "in", tmp_path / "private.json"
    folder.mkdir()
    outside.write_text("{}")
    (folder / "linked.json").symlink_to(outside)
    (folder / "sub").symlink_to(tmp_path)
    for document in ("../private.json", str(outside), "linked.json", "sub/private.json", "/etc/passwd"):
        path = _source(folder, document)
        [fault] = faults_of(path)
        assert "leads out of" in fault, document
    (folder / "linked.json").unlink()
    (folder / "sub").unlink()
    [manifest] = read(_source(folder, "../private.json"), leaves_folder=True)
    assert manifest.document is not None
    for document in ("https://evil.example/a", "'a\\0b'", "''"):
        [fault] = faults_of(_source(folder, document))
        assert "must be a path" in fault or "cannot be read" in fault or "is not accepted" in fault, fault


def test_a_document_of_a_source_is_a_bounded_regular_file(tmp_path: Path) -> None:
    """An attack: a pipe that never ends, and a file of 100 MB that fills the memory of the command."""
    os.mkfifo(tmp_path / "pipe")
    [fault] = faults_of(_source(tmp_path, "pipe"))
    assert "is not a regular file" in fault
    with (tmp_path / "large").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    [fault] = faults_of(_source(tmp_path, "large"))
    assert f"has more than {MAX_DOCUMENT_BYTES // 1024 // 1024} MiB" in fault
    [fault] = faults_of(_source(tmp_path, "missing"))
    assert "cannot be read" in fault


@pytest.mark.parametrize(("name", "digest"), [("../x", hashlib.sha256(b"{}").hexdigest()), ("pets", "0" * 64)])
def test_a_gateway_names_no_file_of_an_export(name: str, digest: str, tmp_path: Path) -> None:
    """Ours: a hostile gateway chooses neither the folder nor the content of an exported document (CLI-1)."""

    def get(path: str) -> JsonObject:
        assert path
        return {"digest": digest}

    def download(path: str, query: JsonObject) -> Iterator[bytes]:
        assert (bool(path), query) == (True, {})
        yield b"{}"

    def place(*parts: str) -> str:
        return "/".join(parts)

    answers = SimpleNamespace(get=get, download=download)
    context = cast(AdminContext, SimpleNamespace(admin=answers, tenant_path=place))
    with pytest.raises(Failure, match="another name or document"):
        exported(context, {"name": name, "status": {"active_version": 1}}, tmp_path)
    assert list(tmp_path.parent.glob("*.openapi.*")) + list(tmp_path.iterdir()) == []
