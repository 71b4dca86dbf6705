"""Objects of every kind, written by one release and read by the other, beside it over one database.

One tenant is written at a replica of commit 79130e09, the other, with the same requests, at one of this tree.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.store.database.migrations import migrate
from tests.deploy.old_release import RELEASES, unpack_old_release
from tests.deploy.topology import clean_environment
from tests.golden.objects import ACME, COLLECTIONS, SINGLETONS, Upstreams, requests
from tests.golden.values import SCHEMA
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.issuer import LocalProvider, OpaqueTokens, new_issuer
from tests.support.replicas import Replica, redis_users
from tests.support.servers import TestServers
from tests.support.upstream import recording_upstream

pytestmark = pytest.mark.long
OTHER = "/tenants/globex"


@pytest.fixture
async def replicas(servers: TestServers, tmp_path: Path) -> AsyncGenerator[tuple[RunningGateway, RunningGateway]]:
    """A replica of the older release and one of this tree, with a tenant that each has filled."""
    release = unpack_old_release(tmp_path, RELEASES[SCHEMA])
    redis_url = servers.empty_redis()
    with servers.empty_database() as database:
        release.migrate(database.owner_url, database.app_url, SECRET_KEY)
        await migrate(database.owner_url)
        async with AsyncExitStack() as stack:
            api, provider, opaque = [await stack.enter_async_context(recording_upstream()) for _ in range(3)]
            LocalProvider(new_issuer(provider)).publish()
            OpaqueTokens(new_issuer(opaque), secret="s3cret-of-introspection")
            environment = clean_environment() | {
                "GATEWAY_DATABASE_URL": database.app_url,
                "GATEWAY_SECRET_KEYS": SECRET_KEY,
                "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
                "GATEWAY_EGRESS_ALLOW": ",".join(one.authority for one in (api, provider, opaque)),
                "GATEWAY_PUBLIC_URL": "http://127.0.0.1:9",
            }
            old = Replica("old", tmp_path, environment | release.environment, redis_url, python=str(release.python))
            new = Replica("new", tmp_path, environment, redis_url)
            stack.enter_context(redis_users(redis_url, [old.redis_user, new.redis_user]))
            for replica in (old, new):
                stack.push_async_callback(replica.close)
                await replica.start()
            at = Upstreams(api=api.url, provider=provider.url, opaque=opaque.url)
            for sent in requests(at):
                answer = await old.gateway.admin.request(sent.method, sent.path, json=sent.body)
                assert answer.is_success, (sent.path, answer.text)
            for sent in requests(at):
                if sent.path.startswith(ACME):
                    path = sent.path.replace(ACME, OTHER)
                    answer = await new.gateway.admin.request(sent.method, path, json=sent.body)
                    assert answer.is_success, (path, answer.text)
            yield old.gateway, new.gateway


async def test_each_release_reads_the_objects_of_the_other(replicas: tuple[RunningGateway, RunningGateway]) -> None:
    """Ours: objects of every kind have the same id and entity tag at both, and a change under it counts (SRV-6)."""
    old, new = replicas
    for tenant in (ACME, OTHER):
        tags = [await _tags(one, tenant) for one in replicas]
        assert tags[0] == tags[1]
        path = f"{tenant}/profiles/readers"
        for changes, reads in ((old, new), (new, old)):
            tag = (await reads.admin.get(path)).headers["etag"]
            body = {"description": f"Changed after {tag}."}
            (await changes.admin.patch(path, json=body, headers={"if-match": tag})).raise_for_status()
            shown = await reads.admin.get(path)
            assert (shown.json()["description"], shown.headers["etag"] == tag) == (body["description"], False)
        trail = await new.admin.get(f"{tenant}/audit/verify")
        assert trail.json()["ok"], trail.text


async def _tags(gateway: RunningGateway, tenant: str) -> Mapping[str, str]:
    """The entity tag of each object, by path; it contains the id of the object."""
    paths = [f"{tenant}/{path}" for path in SINGLETONS]
    for plural in COLLECTIONS:
        items = (await gateway.admin.get(f"{tenant}/{plural}")).raise_for_status().json()["items"]
        assert len(items) >= 2, plural
        paths += [f"{tenant}/{plural}/{item['id']}" for item in items]
    found = {path: (await gateway.admin.get(path)).raise_for_status().headers.get("etag", "") for path in paths}
    assert all(found.values())
    return found
