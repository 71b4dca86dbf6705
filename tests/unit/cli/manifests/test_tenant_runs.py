"""Requests of runs over tenants."""

import httpx

from gateway.cli.client.admin_api import AdminApi
from gateway.cli.manifests.local_secrets import SecretValues
from gateway.cli.manifests.tenant_request import TenantRequest
from gateway.cli.manifests.tenant_runs import TenantRun, TenantRuns


def test_a_run_waits_for_the_rate_limit() -> None:
    """RFC 6585: a request that comes too early is sent again after `Retry-After`; a refusal is not repeated (CFG-1)."""
    statuses = [429, 200, 409]
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.path.rpartition("/tenants/")[2])
        status = statuses[len(sent) - 1]
        return httpx.Response(status, json={"objects": []}, headers={"Retry-After": "0"} if status != 200 else {})

    runs = [TenantRun(request=TenantRequest(tenant=each, body={"objects": []}, places=[])) for each in ("a", "b")]
    with AdminApi("http://127.0.0.1:1", "secret", transport=httpx.MockTransport(answer)) as admin:
        TenantRuns(admin=admin, values=SecretValues({}), runs=runs).preview()
    assert sent == ["a/apply", "a/apply", "b/apply"]
    assert [run.failure is None for run in runs] == [True, False]
