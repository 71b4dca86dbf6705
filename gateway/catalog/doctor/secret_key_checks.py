"""Doctor check of older secret keys: the values that need them, and whether they can be removed."""

from collections.abc import Iterable

from gateway.catalog.identity.secret_keys.start_check import describe
from gateway.catalog.identity.secret_keys.status import SecretKeysState, SecretKeyState
from gateway.domain.findings import Finding, fine, warning

_CHECK = "secret_rotation"
_ROTATE = "run `gateway secrets rotate`"


def check_secret_keys(state: SecretKeysState) -> Iterable[Finding]:
    """One finding for each older secret key that is configured; a single finding if there is none."""
    older = [key for key in state.keys if key.is_configured and not key.is_current]
    strangers = [key for key in state.keys if key.needs and not key.is_configured]
    if not older and not strangers:
        return [fine(_CHECK, "all values are encrypted with the current secret key")]
    return [*(_check_older(key, state) for key in older), *(_check_missing(key) for key in strangers)]


def _check_older(key: SecretKeyState, state: SecretKeysState) -> Finding:
    rotation = state.rotation
    if key.can_be_removed:
        remedy = "remove it from GATEWAY_SECRET_KEYS of every replica, and restart them"
        return warning(_CHECK, f"the older secret key {key.name} is no longer needed", remedy)
    stored = [need for need in key.needs if need.kind != "api_keys"]
    if stored or rotation is None:
        needed = f", which {describe(stored)} need" if stored else ""
        return warning(_CHECK, f"there is an older secret key {key.name}{needed}", _ROTATE)
    if rotation.finished_at is None:
        detail = f"{rotation.values_done} values of {rotation.tenants_done} tenants were re-encrypted"
        return warning(_CHECK, f"a rotation is running: {detail}", rotation.fault or "wait until it has finished")
    keys = sum(need.uses for need in key.needs) + state.unmarked
    if not keys:  # the key was configured after the last rotation
        return warning(_CHECK, f"there is an older secret key {key.name}", _ROTATE)
    remedy = "use them once, rotate or revoke them: `gateway secrets status` lists them"
    return warning(_CHECK, f"{keys} API keys that were not used since the rotation need the key {key.name}", remedy)


def _check_missing(key: SecretKeyState) -> Finding:
    state = "was given up" if key.forgotten_at else "is not configured here"
    detail = f"{describe(key.needs)} need the secret key {key.name}, which {state}"
    return warning(_CHECK, detail, "store or create them again, or configure the key again")
