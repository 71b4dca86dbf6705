"""A gateway that the tests of this folder share."""

from tests.support.stand import database, gateway, own_stand, redis_url, stand, upstream
from tests.support.stand import package_stand as common_stand

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]
