"""Real documents through the admin API: what is reported is what is listed."""

import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.specs import load_spec


@pytest.mark.parametrize("name", ["petstore-v3.yaml", "notion-31.json", "kubernetes-apps-v1.json"])
async def test_a_real_document_is_accounted_for(acme: Acme, name: str) -> None:
    """Ours: every operation is ok, degraded or skipped, and what is not skipped is listed (OAS-1, OAS-3)."""
    report = await acme.gateway.import_document(
        "acme", load_spec(name).decode(), name="real", base_url=acme.upstream.url, prefix="real_"
    )
    tools = (await acme.gateway.admin.get("/tenants/acme/tools", params={"limit": 200})).json()["items"]

    assert sum(report["counts"].values()) == len(report["operations"]) > 0
    made = {operation["tool"] for operation in report["operations"]} - {None}
    assert made == {tool["name"] for tool in tools if tool["name"].startswith("real_")}
