"""Check of the secret keys before a replica serves: with a wrong or missing key, the replica does not start.

The installation registers every secret key that it has used. A replica needs at least one of them, and every key that
stored values need, except keys that the operator has given up with `gateway secrets forget`. An installation of an
earlier release has no register; its keys are derived from the stored values.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import structlog

from gateway.domain.tenancy.secret_keys import KeyNeed, KnownKey
from gateway.errors import BrokenSetting, SecretUnreadable
from gateway.store.audit.anchors import ANCHOR_PURPOSE
from gateway.store.audit.outside_heads import HEADS_PURPOSE
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.secret_keys import registry

log = structlog.get_logger(__name__)

RETAINED = ("audit", "audit heads", ANCHOR_PURPOSE, HEADS_PURPOSE)
"""Purposes of keys that outlast their secret key, because signatures of the audit trail are never renewed."""


class SecretKeyCheck:
    """The check as a component of a replica: it is opened after the store, and before any other component."""

    def __init__(self, store: Store, cipher: EnvelopeCipher) -> None:
        self._store = store
        self._cipher = cipher

    async def __aenter__(self) -> Self:
        """Check the sessions and the schema, then the keys.

        Raises:
            DatabaseUnavailable: the database cannot be used.
            BrokenSetting: the configured keys are not those of this installation, or one that is needed is missing.
        """
        await self._store.check_sessions()
        await self._store.check()
        await check_secret_keys(self._store, self._cipher)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: the check holds no resource."""


async def check_secret_keys(store: Store, cipher: EnvelopeCipher) -> None:
    """Check the configured keys, register new ones, and load the keys that outlasted removed secret keys.

    Raises:
        BrokenSetting: the configured keys are not those of this installation, or one that is needed is missing.
    """
    async with store.unscoped() as db:
        await registry.lock(db)
        known = await registry.known(db)
        needs = [need for need in await registry.needs(db) if need.name]
        if not known:
            await registry.register(db, _check_unregistered(cipher, needs), are_forgotten=True)
        else:
            _check_known(cipher.names, known)
            _check_complete(cipher.names, known, needs)
            _warn_of_new(cipher.names, known)
        await registry.register(db, cipher.names)
    for key in known.values():
        if key.retained is not None:
            _load_retained(cipher, key.name, key.retained)


def missing_keys(
    configured: Sequence[str], known: Mapping[str, KnownKey], needs: Iterable[KeyNeed]
) -> Mapping[str, Sequence[KeyNeed]]:
    """Values whose secret key is neither configured nor given up, by the name of the key."""
    missing: dict[str, list[KeyNeed]] = {}
    for need in needs:
        is_given_up = need.name in known and known[need.name].forgotten_at is not None
        if need.name and need.name not in configured and not is_given_up:
            missing.setdefault(need.name, []).append(need)
    return missing


def describe(needs: Iterable[KeyNeed]) -> str:
    """The kinds and numbers of values, for a message."""
    return ", ".join(f"{need.uses} {need.kind.replace('_', ' ')}" for need in needs)


def _check_unregistered(cipher: EnvelopeCipher, needs: Sequence[KeyNeed]) -> Sequence[str]:
    """Check the keys of an installation of an earlier release, which has no register; return the names of lost keys."""
    used = {need.name for need in needs}
    if used and not used.intersection(cipher.names):  # guard: secret-key-wrong-adopted
        raise BrokenSetting(_wrong_keys_message(cipher.names, sorted(used)))
    lost = sorted(used.difference(cipher.names))
    for name in lost:
        log.error("secret_key_lost", key=name, needed_by=describe(need for need in needs if need.name == name))
    return lost


def _check_known(configured: Sequence[str], known: Mapping[str, KnownKey]) -> None:
    if not set(configured).intersection(known):  # guard: secret-key-wrong
        raise BrokenSetting(_wrong_keys_message(configured, list(known)))


def _check_complete(configured: Sequence[str], known: Mapping[str, KnownKey], needs: Iterable[KeyNeed]) -> None:
    for name, of_key in missing_keys(configured, known, needs).items():  # guard: secret-key-missing
        raise BrokenSetting(
            f"GATEWAY_SECRET_KEYS lacks the secret key {name}, which stored values need ({describe(of_key)});"
            f" put it back at the end of the list, and run `gateway secrets rotate` before it is removed;"
            f" if it is lost, give up what needs it with `gateway secrets forget {name}`"
        )


def _warn_of_new(configured: Sequence[str], known: Mapping[str, KnownKey]) -> None:
    for position, name in enumerate(configured):
        if name in known:
            continue
        if position == 0:
            log.warning("secret_key_new_and_first", key=name, remedy="put a new key last, until every replica has it")
        else:
            log.info("secret_key_new", key=name)


def _load_retained(cipher: EnvelopeCipher, name: str, retained: bytes) -> None:
    try:
        cipher.learn(name, retained)
    except SecretUnreadable:
        log.error("retained_keys_unreadable", key=name)


def _wrong_keys_message(configured: Sequence[str], known: Sequence[str]) -> str:
    return (
        f"GATEWAY_SECRET_KEYS has none of the secret keys of this installation ({', '.join(known)}), but"
        f" {', '.join(configured)}; set the keys with which this database was used, the newest first"
    )
