"""Stored policies: each tenant's decisions about calls, and its limits."""

from dataclasses import replace

import msgspec
from sqlalchemy import RowMapping, bindparam, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.policy import Decision, Limits, Policy, PolicyRule, RecordingRule
from gateway.store.engine import Db
from gateway.store.tables import policies

_OF_TENANT = select(policies).where(policies.c.tenant_id == bindparam("tenant"))


async def get(tenant: TenantId, db: Db) -> Policy:
    """The tenant's policy; the default one without a row."""
    rows = await db.execute(_OF_TENANT, {"tenant": tenant})
    row = rows.mappings().one_or_none()
    return _policy(row) if row else Policy()


async def save(tenant: TenantId, db: Db, policy: Policy) -> Policy:
    """Replace the tenant's policy, and return it with its new version.

    Raises:
        NotFound: there is no such tenant.
    """
    columns = _row_values(policy)
    # A tenant without a row has the default policy at version 1, so its first row is version 2.
    first = insert_into(policies).values(tenant_id=tenant, version=Policy().version + 1, **columns)
    written = first.on_conflict_do_update(
        index_elements=[policies.c.tenant_id], set_={**columns, "version": policies.c.version + 1}
    )
    version = (await db.execute(written.returning(policies.c.version))).scalar_one()
    return replace(policy, version=int(version))


def _row_values(policy: Policy) -> dict[str, object]:
    return {
        "safe": policy.safe.value,
        "moderate": policy.moderate.value,
        "dangerous": policy.dangerous.value,
        "calls_per_second": policy.limits.calls_per_second,
        "burst": policy.limits.burst,
        "concurrency": policy.limits.concurrency,
        "sessions": policy.limits.sessions,
        "streams": policy.limits.streams,
        "primitives": policy.limits.primitives,
        "http_origins": None if policy.http_origins is None else list(policy.http_origins),
        "rules": msgspec.to_builtins(policy.rules),
        "recorded_arguments": msgspec.to_builtins(policy.recorded_arguments),
    }


def _policy(row: RowMapping) -> Policy:
    return Policy(
        safe=Decision(row["safe"]),
        moderate=Decision(row["moderate"]),
        dangerous=Decision(row["dangerous"]),
        limits=Limits(
            calls_per_second=row["calls_per_second"],
            burst=row["burst"],
            concurrency=row["concurrency"],
            sessions=row["sessions"],
            streams=row["streams"],
            primitives=row["primitives"],
        ),
        http_origins=None if row["http_origins"] is None else tuple(row["http_origins"]),
        rules=msgspec.convert(row["rules"], tuple[PolicyRule, ...]),
        recorded_arguments=msgspec.convert(row["recorded_arguments"], tuple[RecordingRule, ...]),
        version=row["version"],
    )
