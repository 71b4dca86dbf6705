"""Manifests: documents, their members, and faults of all files at once."""

import json
from pathlib import Path

import pytest

from gateway.cli.failures import Failure
from gateway.cli.manifests.limits import MAX_SHOWN_FAULTS
from gateway.cli.manifests.members import members_by_name
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import MANIFEST_KINDS, key_member
from gateway.kinds.selections import PROFILE as PROFILES
from tests.unit.cli.manifests.reading import PROFILE, example_of, faults_of, key_of_example, read, write


def test_folders_are_read_recursively_and_in_order(tmp_path: Path) -> None:
    """Ours: YAML and JSON, several documents in a file, and no hidden entries (CFG-1)."""
    one = {"apiVersion": "gateway/v1", "kind": "profile", "name": "d"}
    write(
        tmp_path,
        b__b_yaml=PROFILE.format(name="b"),
        a_yml=f"# first\n---\n{PROFILE.format(name='a')}---\n{PROFILE.format(name='aa')}",
        c_json=json.dumps(one),
        d_json=json.dumps([one | {"name": "e"}, one | {"name": "f"}]),
        README_md="no manifest",
    )
    write(tmp_path / ".git", x_yaml="[")

    assert [found.key for found in read(tmp_path)] == ["a", "aa", "d", "e", "f", "b"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    """Ours: a folder and a file of it may both be named."""
    write(tmp_path, a_yaml=PROFILE.format(name="a"))

    assert len(read(tmp_path, tmp_path / "a.yaml")) == 1


@pytest.mark.parametrize("name", list(MANIFEST_KINDS))
def test_the_example_of_every_kind_is_a_manifest(tmp_path: Path, name: str) -> None:
    """Ours: members have the names of REST, but a member `kind` is `type` (CFG-1)."""
    kind = MANIFEST_KINDS[name]
    key = key_member(kind)
    path = tmp_path / "one.json"
    path.write_text(json.dumps(example_of(name)))

    [found] = read(path)

    assert (found.kind, found.key) == (kind, key_of_example(name))
    assert found.members.keys() == kind.example.keys() - {key}
    assert (key is None) is not isinstance(kind, Kind)


def test_all_faults_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    """Ours: each with its file, document and path, and the nearest known name (CFG-1)."""
    write(
        tmp_path,
        a_yaml="apiVersion: gateway/v1\nkind: profle\nname: a\n---\nb: [\n---\n- c\n---\n"
        + PROFILE.format(name="d")
        + "incldue: []\ninclude: [{nams: [x]}]\nid: prf_1\nstatus: {}\n",
        b_json="{",
        c_yaml="apiVersion: gateway/v9\nkind: policy\nlimits: {burts: 3}\n",
        d_yaml=PROFILE.format(name="3"),
        e_yaml=PROFILE.format(name="e") + "moved: e\nunheardofmember: 1\n",
    )

    assert faults_of(tmp_path) == [
        "a.yaml, document 1: /kind: is unknown; the nearest is `profile`",
        "a.yaml, document 2 (line 6, column 1): is not accepted as YAML: did not find expected node content",
        "a.yaml, document 3: is not an object",
        "a.yaml, document 4: /incldue: is unknown; the nearest is `include`",
        "a.yaml, document 4: /include/0/nams: is unknown; the nearest is `names`",
        "a.yaml, document 4: /id: is set by the gateway; leave it out",
        "a.yaml, document 4: /status: is set by the gateway; leave it out",
        "b.json (line 1, column 2): is not valid JSON: Expecting property name enclosed in double quotes",
        "c.yaml: /apiVersion: must be gateway/v1",
        "c.yaml: /limits/burts: is unknown; the nearest is `burst`",
        "d.yaml: /name: is required, a text",
        "e.yaml: /moved: must be the former name of the object",
        f"e.yaml: /unheardofmember: is unknown; one of {', '.join(members_by_name(PROFILES))}",
    ]


def test_an_object_has_one_manifest(tmp_path: Path) -> None:
    """Ours: a second one is a fault that names both places, also for a singleton (CFG-1)."""
    write(
        tmp_path,
        a_yaml=PROFILE.format(name="a"),
        b_yaml=PROFILE.format(name="b") + "---\n" + PROFILE.format(name="a"),
        c_yaml="apiVersion: gateway/v1\nkind: policy\n---\napiVersion: gateway/v1\nkind: policy\n",
    )

    assert faults_of(tmp_path) == [
        f"b.yaml, document 2: profile a is declared twice; the other one is in {tmp_path}/a.yaml".replace(
            f"{tmp_path}/", ""
        ),
        "c.yaml, document 2: policy is declared twice; the other one is in c.yaml, document 1",
    ]


def test_tenants_of_documents(tmp_path: Path) -> None:
    """Ours: documents name tenants, or the command does; both must agree (CFG-1)."""
    write(tmp_path, a_yaml=PROFILE.format(name="a") + "tenant: acme\n", b_yaml=PROFILE.format(name="a"))

    assert [one.tenant for one in read(tmp_path / "a.yaml", tenant=None)] == ["acme"]
    assert faults_of(tmp_path, tenant=None) == ["b.yaml: /tenant: is required here, as --tenant or as GATEWAY_TENANT"]
    assert faults_of(tmp_path, tenant="other") == [
        "a.yaml: /tenant: is another one than --tenant or GATEWAY_TENANT, other"
    ]


def test_documents_of_sources_may_be_in_the_folder(tmp_path: Path) -> None:
    """Ours: an OpenAPI document beside manifests is none, unless it is named itself (CFG-1)."""
    write(tmp_path, api_yaml="openapi: 3.1.0\npaths: {}\n", a_yaml=PROFILE.format(name="a"))

    assert [one.key for one in read(tmp_path)] == ["a"]
    assert faults_of(tmp_path / "api.yaml") == [
        "api.yaml: /apiVersion: must be gateway/v1",
        "api.yaml: /kind: is required, a text",
    ]


def test_few_faults_are_printed(tmp_path: Path) -> None:
    """Ours: a file with faults in every line fills no terminal, and takes no time for suggestions."""
    write(tmp_path, a_yaml=PROFILE.format(name="a") + "".join(f"m{number}: 1\n" for number in range(10_000)))

    with pytest.raises(Failure, match="more than 100 faults") as raised:
        read(tmp_path)

    assert len(raised.value.faults) == MAX_SHOWN_FAULTS


def test_an_empty_folder_has_no_manifest(tmp_path: Path) -> None:
    """Ours: no fault of reading, so that commands can name the empty folder."""
    assert read(tmp_path) == []
