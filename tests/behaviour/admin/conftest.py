"""A gateway that may fetch from, and call, one recording upstream; and the admin document it serves."""

from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]
