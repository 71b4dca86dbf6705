"""Doctor checks of the configuration and the machine: keys, egress, clock, disk, policy."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.catalog.doctor.limits import LARGE_SKEW_S, MIN_KEY_LENGTH, SMALL_SKEW_S
from gateway.catalog.snapshots.python_primitives import PythonPrimitives
from gateway.domain.findings import Finding, failure, fine, warning
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.domain.tenancy.policy import PROTECTING, Policy, Safety, weaker_levels
from gateway.redis.diagnostics import RedisFacts
from gateway.store.database.diagnostics import DatabaseFacts
from gateway.store.encryption import EnvelopeCipher
from gateway.upstream.egress.addresses import is_public, read_address
from gateway.upstream.secret_stores.stores import SecretStores

_MIB = 1 << 20
_WARN_FREE, _FAIL_FREE = 1024 * _MIB, 128 * _MIB
"""Thresholds of free bytes with embedded servers, for a warning and for a failure."""
_WARN_FREE_FOR_KEYS, _FAIL_FREE_FOR_KEYS = 16 * _MIB, _MIB
"""The same thresholds without embedded servers; the data folder then contains at most two keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Facts about the installation from its settings and its Python registrations."""

    database_url: str | ConfiguredSecret = field(repr=False)
    redis_url: str | ConfiguredSecret = field(repr=False)
    data_dir: Path
    is_embedded: bool = False
    """True if PostgreSQL and Redis keep their data in the data folder."""
    egress_allow: Sequence[str] = ()
    secret_key_lengths: Sequence[int] = ()
    secret_keys_are_generated: bool = False
    """True if the gateway generated the secret keys into the data folder."""
    operator_key_lengths: Sequence[int] = ()
    """Lengths in characters; none if there is no operator key yet."""
    operator_key_is_generated: bool = False
    """True if the gateway generated the operator key into the data folder."""
    cipher: EnvelopeCipher | None = field(default=None, repr=False)
    secret_stores: SecretStores | None = field(default=None, repr=False)
    """External secret stores of this replica, not opened yet."""
    public_url: str | None = None
    """The gateway's own URL, if it is configured."""
    tenant_policy: Policy = PROTECTING
    """The policy of new tenants."""
    code: PythonPrimitives | None = None
    """Primitives registered in Python on this replica."""


def check_keys(installation: Installation) -> Iterable[Finding]:
    """Findings on the origin and the length of the keys; no finding contains a key."""
    return (
        _keys(
            "secret_keys",
            "GATEWAY_SECRET_KEYS",
            installation.secret_key_lengths,
            folder=installation.data_dir if installation.secret_keys_are_generated else None,
        ),
        _keys(
            "operator_key",
            "GATEWAY_OPERATOR_KEY",
            installation.operator_key_lengths,
            folder=installation.data_dir if installation.operator_key_is_generated else None,
        ),
    )


def check_egress(allowed: Sequence[str], tenants: int | None) -> Finding:
    """Finding on private upstreams that `GATEWAY_EGRESS_ALLOW` opens to several tenants.

    `tenants` is the number of tenants; None if it is unknown.
    """
    inner = [entry for entry in allowed if not _is_public(entry)]
    if not inner:
        return fine("egress", "GATEWAY_EGRESS_ALLOW opens no private upstream to all tenants")
    hosts = ", ".join(inner)
    if tenants is not None and tenants <= 1:
        return fine("egress", f"GATEWAY_EGRESS_ALLOW opens {hosts} to all tenants; there is at most one tenant")
    each = f"for each tenant that needs one, run `gateway tenant egress SLUG --allow {inner[0]}`"
    return warning(
        "egress",
        f"GATEWAY_EGRESS_ALLOW opens these private upstreams to every tenant: {hosts}",
        f"{each}; then remove it from GATEWAY_EGRESS_ALLOW",
    )


def check_clock(database: DatabaseFacts | None, redis: RedisFacts | None) -> Finding:
    """Finding on the skew between the clocks by which keys expire and limits are counted."""
    skews = {
        name: facts.clock_skew_s for name, facts in (("PostgreSQL", database), ("Redis", redis)) if facts is not None
    }
    if not skews:
        remedy = "fix the findings on PostgreSQL and Redis first"
        return warning("clock", "there is no other clock for a comparison", remedy)
    message = ", ".join(f"{name} {skew:+.1f} s" for name, skew in skews.items())
    worst = max(abs(skew) for skew in skews.values())
    if worst < SMALL_SKEW_S:
        return fine("clock", f"agrees with {' and '.join(skews)}")
    verdict_of = failure if worst >= LARGE_SKEW_S else warning
    return verdict_of("clock", f"against this machine: {message}", "run a time service (NTP) on every machine")


def check_disk(folder: Path, *, is_embedded: bool) -> Finding:
    """Finding on the free bytes of the data folder's file system; the limits are higher with embedded servers."""
    little, none = (_WARN_FREE, _FAIL_FREE) if is_embedded else (_WARN_FREE_FOR_KEYS, _FAIL_FREE_FOR_KEYS)
    existing = next((path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(existing).free
    message = f"{free // _MIB:,} MiB are free on the file system of the data folder"
    message += "" if is_embedded else ", which contains no data of the configured servers"
    if free >= little:
        return fine("disk", message)
    verdict_of = failure if free < none else warning
    return verdict_of("disk", message, "free disk space, or move GATEWAY_DATA_DIR")


def check_default_policy(policy: Policy) -> Finding:
    """Finding on the policy decisions of new tenants."""
    decisions = ", ".join(f"{level} {policy.decision_for(level)}" for level in Safety)
    weaker = weaker_levels(policy)
    if not weaker:
        return fine("policy", f"new tenants get {decisions}")
    detail = f"new tenants get {decisions}, which is weaker than the default for {' and '.join(weaker)} calls"
    return warning("policy", detail, "unset GATEWAY_TENANT_POLICY, or make it stricter")


def _keys(check: str, variable: str, lengths: Sequence[int], *, folder: Path | None) -> Finding:
    if not lengths:
        return warning(check, "not set yet", f"set {variable}, or start `gateway serve`, which generates one")
    message = f"set, with {' and '.join(map(str, lengths))} characters"
    if min(lengths) < MIN_KEY_LENGTH:
        remedy = f"set {variable} to at least {MIN_KEY_LENGTH} random characters"
        return failure(check, f"{message}: too short, and can be guessed", remedy)
    if folder is not None:
        detail = f"{message}, generated by the gateway and stored in {folder}: valid for one machine"
        return warning(check, detail, f"set {variable} before you start a second replica, and keep a copy elsewhere")
    return fine(check, f"{message}, configured")


def _is_public(entry: str) -> bool:
    """True if the entry is a public IP address. A host name counts as private: it may resolve to any address."""
    address = read_address(entry.rpartition(":")[0].strip("[]"))
    return address is not None and is_public(address)
