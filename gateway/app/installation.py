"""Facts of the installation from its settings, for the doctor."""

from gateway.app.secret_stores import build_secret_stores
from gateway.app.secrets import GatewayKeys
from gateway.catalog.doctor.environment_checks import Installation
from gateway.catalog.snapshots.python_primitives import PythonPrimitives
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.domain.tenancy.policy import read_decisions
from gateway.settings import Settings
from gateway.store.encryption import EnvelopeCipher


def describe_installation(
    settings: Settings,
    keys: GatewayKeys,
    database_url: str | ConfiguredSecret,
    redis_url: str | ConfiguredSecret,
    *,
    code: PythonPrimitives,
) -> Installation:
    """Return the facts that PostgreSQL and Redis cannot report. Keys are included only as lengths and as a cipher."""
    return Installation(
        database_url=database_url,
        redis_url=redis_url,
        data_dir=settings.data_dir,
        is_embedded=settings.database_url is None,
        egress_allow=settings.egress_allow,
        secret_key_lengths=[len(key) for key in keys.secret_keys],
        secret_keys_are_generated=not settings.secret_keys,
        operator_key_lengths=[len(key) for key in keys.operator_keys],
        operator_key_is_generated=not settings.operator_key,
        cipher=EnvelopeCipher(keys.secret_keys) if keys.secret_keys else None,
        secret_stores=build_secret_stores(settings),
        public_url=settings.public_url,
        tenant_policy=read_decisions(settings.tenant_policy),
        code=code,
    )
