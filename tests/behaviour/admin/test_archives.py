"""Archives over REST: many files become one source, which goes on without them."""

import base64
from collections.abc import Mapping

import pytest

from tests.support.archives import ZOO, tar_of, tgz_of, zip_of
from tests.support.gateway import RunningGateway
from tests.support.specs import specs_dir

SOURCES = "/tenants/acme/sources"


def archived(raw: bytes, **more: object) -> Mapping[str, object]:
    return {"archive": {"base64": base64.b64encode(raw).decode(), **more}}


@pytest.mark.parametrize("raw", [zip_of(ZOO), tar_of(ZOO), tgz_of(ZOO)])
async def test_an_archive_is_a_source_like_any_other(gateway: RunningGateway, raw: bytes) -> None:
    """Ours: relative references are followed inside it; later changes need no archive (OAS-1, OAS-7)."""
    await gateway.create_tenant("acme")
    tried = await gateway.admin.post(SOURCES, json={"name": "zoo", "dry_run": True, **archived(raw)})
    made = await gateway.admin.post(SOURCES, json={"name": "zoo", **archived(raw)})
    again = await gateway.admin.patch(f"{SOURCES}/zoo", json={"prefix": "z"})
    replaced = await gateway.admin.put(f"{SOURCES}/zoo", json=archived(raw, entry="zoo/openapi.yaml"))

    assert (tried.status_code, made.status_code) == (200, 201), made.text
    assert made.json()["status"]["title"] == "Zoo"
    assert made.json()["report"]["counts"] == {"ok": 3, "degraded": 0, "skipped": 0}
    assert tried.json()["report"] == made.json()["report"]
    assert [item["tool"] for item in again.json()["report"]["operations"]] == [
        "z_list_animals",
        "z_add_animal",
        "z_add_keeper",
    ]
    assert replaced.status_code == 200, replaced.text
    assert [item["tool"] for item in replaced.json()["report"]["operations"]] == [
        "list_animals",
        "add_animal",
        "add_keeper",
    ]


async def test_an_archive_of_three_thousand_files_is_imported_whole(gateway: RunningGateway) -> None:
    """Ours: 659 operations are accounted for, at least 99 of 100 become tools (OAS-1, OAS-3, OAS-7)."""
    await gateway.create_tenant("acme")
    raw = (specs_dir() / "digitalocean-multifile.tar.gz").read_bytes()

    made = await gateway.admin.post(SOURCES, json={"name": "ocean", **archived(raw)})

    assert made.status_code == 201, made.text
    counts = made.json()["report"]["counts"]
    assert sum(counts.values()) == 659
    assert counts["ok"] + counts["degraded"] >= 652


async def test_a_broken_archive_is_refused_with_the_reason(gateway: RunningGateway) -> None:
    """Ours: the refusal names the file or what is missing (OAS-7)."""
    await gateway.create_tenant("acme")
    root = ZOO["zoo/openapi.yaml"]
    refused = {
        "not valid base64": {"archive": {"base64": "\u00e4"}},
        "is not valid base64": {"archive": {"base64": "a"}},
        "neither zip nor tar": archived(b"openapi"),
        "no file is an OpenAPI document": archived(zip_of({"a.yaml": b"x: 1"})),
        "several files": archived(zip_of({"a.yaml": root, "b.yaml": root})),
        "'broken.yaml'": archived(
            zip_of({"a.yaml": b'openapi: 3.1.0\npaths: {$ref: "broken.yaml"}', "broken.yaml": b"a: ["})
        ),
    }
    for states, body in refused.items():
        answer = await gateway.admin.post(SOURCES, json={"name": "zoo", **body})
        assert answer.status_code == 422, answer.text
        assert states in answer.json()["detail"]
    both = await gateway.admin.post(SOURCES, json={"name": "zoo", "document": {}, **archived(b"")})
    assert both.status_code == 400


async def test_a_file_that_is_missing_is_a_warning_and_costs_its_operation(gateway: RunningGateway) -> None:
    """Ours: the report names what the archive lacks (OAS-3, OAS-7)."""
    await gateway.create_tenant("acme")
    files = {name: raw for name, raw in ZOO.items() if not name.endswith("add.yaml")}

    made = await gateway.admin.post(SOURCES, json={"name": "zoo", **archived(zip_of(files))})

    report = made.json()["report"]
    assert any("'./add.yaml' is not in the archive" in warning for warning in report["warnings"]), report
    assert "the root of the archive is 'zoo/openapi.yaml'" in report["notes"]
    assert [item["tool"] for item in report["operations"]] == ["list_animals", None, "add_keeper"]
    assert "./add.yaml" in report["operations"][1]["reasons"][0]
