"""Doctor check of secret keys other than the current one.

It reports old keys that can be removed or rotated away, and needed keys that are not configured.
"""

from collections.abc import Iterable

from gateway.catalog.identity.secret_keys.start_check import describe
from gateway.domain.findings import Finding, fine, warning
from gateway.domain.tenancy.secret_keys import SecretKeysState, SecretKeyState

_CHECK = "secret_rotation"
_ROTATE_REMEDY = "run `gateway secrets rotate`"


def check_secret_keys(state: SecretKeysState) -> Iterable[Finding]:
    """One finding for each configured old key and each missing key; a single OK finding if there are neither."""
    old_keys = [key for key in state.keys if key.is_configured and not key.is_current]
    missing_keys = [key for key in state.keys if key.needs and not key.is_configured]
    if not old_keys and not missing_keys:
        return [fine(_CHECK, "all values are encrypted with the current secret key")]
    return [*(_old_key_finding(key, state) for key in old_keys), *(_missing_key_finding(key) for key in missing_keys)]


def _old_key_finding(key: SecretKeyState, state: SecretKeysState) -> Finding:
    rotation = state.rotation
    if key.can_be_removed:
        remedy = "remove it from GATEWAY_SECRET_KEYS of every replica, and restart them"
        return warning(_CHECK, f"the old secret key {key.name} is no longer needed", remedy)
    stored = [need for need in key.needs if need.kind != "api_keys"]
    if stored or rotation is None:
        dependents = f"; {describe(stored)} need it" if stored else ""
        return warning(_CHECK, f"the old secret key {key.name} is still configured{dependents}", _ROTATE_REMEDY)
    if rotation.finished_at is None:
        detail = f"values re-encrypted: {rotation.values_done}; tenants: {rotation.tenants_done}"
        detail += f"; {rotation.fault}" if rotation.fault else ""
        return warning(_CHECK, f"a rotation is running: {detail}", "wait until it has finished")
    keys = sum(need.uses for need in key.needs) + state.unmarked
    if not keys:  # no value needs the key, but it is removable only after a rotation
        return warning(_CHECK, f"the old secret key {key.name} is still configured", _ROTATE_REMEDY)
    remedy = "use, rotate or revoke these API keys; `gateway secrets status` lists them"
    detail = f"{keys} API keys, unused since the rotation, still depend on the secret key {key.name}"
    return warning(_CHECK, detail, remedy)


def _missing_key_finding(key: SecretKeyState) -> Finding:
    problem = "was forgotten (`gateway secrets forget`)" if key.forgotten_at else "is not configured on this replica"
    detail = f"{describe(key.needs)} need the secret key {key.name}, which {problem}"
    return warning(_CHECK, detail, "configure the secret key again, or store or create the values again")
