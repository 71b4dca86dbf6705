"""A gateway that may fetch from one recording upstream, which is also the issuer of access tokens."""

from tests.attacks.authorization.conftest import application, provider_keys
from tests.support.chromium import browser, chromium
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream

__all__ = [
    "application",
    "browser",
    "chromium",
    "common_stand",
    "database",
    "gateway",
    "own_stand",
    "provider_keys",
    "redis_url",
    "stand",
    "upstream",
]
