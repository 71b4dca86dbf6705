"""A signing key that its issuer has removed, for example because it was stolen: each change of the issuer ends it."""

from collections.abc import Awaitable, Callable, Sequence

from gateway.domain.identifiers import mint
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.issuer import LocalIssuer, add_issuer, new_issuer, new_keys
from tests.support.replicas import until
from tests.support.stand import Stand
from tests.support.upstream import RecordingUpstream

_ISSUER = "/tenants/acme/issuers/corp"
Change = Callable[[RunningGateway, LocalIssuer], Awaitable[None]]


async def _switch(gateway: RunningGateway, _: LocalIssuer) -> None:
    for enabled in (False, True):
        (await gateway.admin.patch(_ISSUER, json={"enabled": enabled})).raise_for_status()


async def _replace(gateway: RunningGateway, issuer: LocalIssuer) -> None:
    (await gateway.admin.delete(_ISSUER)).raise_for_status()
    await add_issuer(gateway, "acme", issuer)


async def _admit_others(gateway: RunningGateway, _: LocalIssuer) -> None:
    (await gateway.admin.patch(_ISSUER, json={"rules": [{"subject": "ada"}]})).raise_for_status()


async def _refresh(gateway: RunningGateway, _: LocalIssuer) -> None:
    (await gateway.admin.post(f"{_ISSUER}/refresh-keys")).raise_for_status()


async def _status(gateway: RunningGateway, issuer: LocalIssuer, kid: str) -> int:
    token = issuer.token(f"{gateway.url}/t/acme/mcp", kid=kid, jti=mint("key"))
    return (await gateway.rpc("acme", token, "tools/list")).status_code


async def test_a_removed_key_ends_with_a_change_of_its_issuer(
    stand: Stand, gateway: RunningGateway, upstream: RecordingUpstream
) -> None:
    """Ours: both replicas drop the cached set, and the new key is accepted at once (TEN-2, IDN-2)."""
    issuer = new_issuer(upstream)
    await gateway.create_tenant("acme")
    await add_issuer(gateway, "acme", issuer)
    reachable = [upstream.authority]
    async with running_gateway(stand.database.app_url, stand.redis_url, egress_allow=reachable) as other:
        for change in (_switch, _replace, _admit_others, _refresh):
            await _remove_a_key(issuer, (gateway, other), change)


async def _remove_a_key(issuer: LocalIssuer, both: Sequence[RunningGateway], change: Change) -> None:
    assert [await _status(each, issuer, "rsa") for each in both] == [200, 200]
    thief = LocalIssuer(issuer.upstream, dict(issuer.keys))
    issuer.keys = {"next": new_keys()["rsa"]}
    issuer.publish()
    assert [await _status(each, thief, "rsa") for each in both] == [200, 200]  # cached for ten minutes

    await change(both[0], issuer)

    async def is_over() -> bool:
        return [await _status(each, thief, "rsa") for each in both] == [401, 401]

    await until(is_over, seconds=5)
    assert [await _status(each, issuer, "next") for each in both] == [200, 200]
    issuer.keys = {"rsa": issuer.keys["next"]}
    issuer.publish()
    (await both[0].admin.post(f"{_ISSUER}/refresh-keys")).raise_for_status()
    await until(lambda: _are_new(issuer, both), seconds=5)


async def _are_new(issuer: LocalIssuer, both: Sequence[RunningGateway]) -> bool:
    return [await _status(each, issuer, "rsa") for each in both] == [200, 200]


async def test_keys_that_cannot_be_fetched_are_dropped_all_the_same(
    gateway: RunningGateway, upstream: RecordingUpstream
) -> None:
    """Ours: a stolen key does not outlast the order to drop it because its issuer is away (TEN-2, IDN-2)."""
    issuer = new_issuer(upstream)
    await gateway.create_tenant("acme")
    await add_issuer(gateway, "acme", issuer)
    assert await _status(gateway, issuer, "rsa") == 200
    upstream.status = 503

    refused = await gateway.admin.post(f"{_ISSUER}/refresh-keys")

    assert (refused.status_code, "were dropped" in refused.json()["detail"]) == (502, True)
    assert await _status(gateway, issuer, "rsa") == 503
