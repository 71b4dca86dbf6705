"""The tenants that the tests of this folder share."""

from tests.support.kind_world import world

__all__ = ["world"]
