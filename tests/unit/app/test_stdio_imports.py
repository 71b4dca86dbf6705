"""Imports of a start of `gateway stdio` with the packages that serve its calls."""

import subprocess
import sys

_PROGRAM = """
import pkgutil, sys
import gateway.calls, gateway.handlers, gateway.registry
for package in (gateway.calls, gateway.handlers, gateway.registry):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        # only servers with a database have approvals, and clients attached to tenants
        if not module.name.startswith(("gateway.calls.approval", "gateway.registry.connections")):
            __import__(module.name)
print(*sys.modules)
"""
_STORES = ("gateway.store", "gateway.redis", "sqlalchemy", "redis", "asyncpg")


def test_calls_are_served_without_the_modules_of_stores() -> None:
    """Ours: a server of documents starts without the time of a database's modules (SRV-1)."""
    command = [sys.executable, "-P", "-c", _PROGRAM]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    found = done.stdout.split()

    assert "gateway.handlers.live.handlers" in found
    assert not {"gateway.calls.approval", "gateway.registry.connections.connections"} & {*found}
    assert [name for name in found if name.startswith(_STORES)] == []
