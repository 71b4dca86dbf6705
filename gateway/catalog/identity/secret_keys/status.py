"""State of the installation's secret keys: the values that need each key, and the keys that can be removed."""

from collections.abc import Sequence
from datetime import timedelta

from gateway.catalog.identity.limits import MAX_DEPENDENT_KEYS
from gateway.domain.tenancy.secret_keys import DependentKey, KeyNeed, SecretKeysState, SecretKeyState
from gateway.errors import BadInput, NotFound
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store
from gateway.store.secret_keys import registry, rotation_state

REPORTED_FOR = timedelta(seconds=60)
"""Time for which a replica counts as running after its last report."""


async def read_state(store: Store, cipher: EnvelopeCipher) -> SecretKeysState:
    """Read the state of the secret keys."""
    async with store.unscoped() as db:
        known = await registry.known(db)
        needs = await registry.needs(db)
        rotation = await rotation_state.get(db)
        unmarked = sum(need.uses for need in needs if not need.name)
        is_finished = rotation is not None and rotation.finished_at is not None and rotation.key_name == cipher.names[0]
        keys: list[SecretKeyState] = []
        for key in known.values():
            of_key = [need for need in needs if need.name == key.name]
            is_current = key.name == cipher.names[0]
            is_free = is_finished and not of_key and not unmarked and key.retained is not None
            keys.append(
                SecretKeyState(
                    name=key.name,
                    is_current=is_current,
                    is_configured=key.name in cipher.names,
                    known_since=key.known_since,
                    forgotten_at=key.forgotten_at,
                    needs=of_key,
                    dependent=[] if is_current else await _dependent(db, key.name, of_key),
                    can_be_removed=not is_current and (is_free or key.forgotten_at is not None),
                )
            )
        unmarked_keys = await registry.dependent_keys(db, None, MAX_DEPENDENT_KEYS if unmarked else 0)
        replicas = await registry.running(db, within=REPORTED_FOR)
    return SecretKeysState(
        keys=keys, unmarked=unmarked, unmarked_keys=unmarked_keys, rotation=rotation, replicas=replicas
    )


async def forget(store: Store, cipher: EnvelopeCipher, name: str) -> None:
    """Forget a secret key that is lost or no longer needed; values that need it stay unreadable.

    Nothing is deleted: if the key is configured again, its values can be decrypted again.

    Raises:
        NotFound: the installation has no such key.
        BadInput: the key is configured here.
    """
    if name in cipher.names:  # guard: secret-key-forgotten-in-use
        raise BadInput(f"the secret key {name} is configured here; remove it from GATEWAY_SECRET_KEYS instead")
    async with store.unscoped() as db:
        await registry.lock(db)
        if not await registry.forget(db, name):
            known = ", ".join(await registry.known(db)) or "none"
            raise NotFound(f"no such secret key; the installation has {known}")


async def _dependent(db: Db, name: str, needs: Sequence[KeyNeed]) -> Sequence[DependentKey]:
    has_keys = any(need.kind == "api_keys" for need in needs)
    return await registry.dependent_keys(db, name, MAX_DEPENDENT_KEYS) if has_keys else []
