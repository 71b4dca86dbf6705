"""External secret stores, built from the settings."""

import ipaddress
from urllib.parse import unquote, urlsplit

from gateway.errors import BrokenSetting
from gateway.settings import Settings
from gateway.upstream.secret_stores.stores import SecretStores
from gateway.upstream.secret_stores.vault import VaultSettings

_FORM = (
    "GATEWAY_VAULT_URL: must be https://token:TOKEN@HOST:PORT/MOUNT/PATH, or have kubernetes:ROLE or"
    " approle:ROLE_ID:SECRET_ID in place of token:TOKEN; http is for addresses of this machine"
)


def build_secret_stores(settings: Settings) -> SecretStores:
    """Build the stores that the operator has configured; nothing is opened.

    Raises:
        BrokenSetting: the URL of the Vault-compatible server is malformed.
    """
    vault = None if settings.vault_url is None else read_vault_url(settings.vault_url.get_secret_value())
    return SecretStores(folder=settings.secret_folder, variables=frozenset(settings.secret_variables), vault=vault)


def read_vault_url(text: str) -> VaultSettings:
    """Parse the URL of a Vault-compatible server: address, authentication method, and the path of the tenants.

    Raises:
        BrokenSetting: the URL is malformed; the message omits the URL, because it contains a secret.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise BrokenSetting(_FORM) from None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))  # guard: vault-tls
    path, method = parts.path.strip("/"), parts.username
    role, _, secret_id = (parts.password or "").partition(":")
    if not is_safe or not host or not path or not role or parts.query or parts.fragment:
        raise BrokenSetting(_FORM)
    at = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{at}" + (f":{port}" if port else "")
    if method == "token" and not secret_id:
        return VaultSettings(url=url, path=path, token=unquote(role))
    if method == "kubernetes" and not secret_id:
        return VaultSettings(url=url, path=path, role=f"kubernetes:{unquote(role)}")
    if method == "approle" and secret_id:
        return VaultSettings(url=url, path=path, role=unquote(role), secret_id=unquote(secret_id))
    raise BrokenSetting(_FORM)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
