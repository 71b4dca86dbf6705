"""Servers of this package."""

from tests.support.stand import database, own_stand, redis_url, stand
from tests.support.stand import package_stand as common_stand

__all__ = ["common_stand", "database", "own_stand", "redis_url", "stand"]
