"""Imports of a provider's program through `gateway.provide`."""

import subprocess
import sys

from tests.unit.app.test_imports import OF_PYTHON

ALLOWED = frozenset({"gateway", "msgspec", "websockets", "typing_extensions"})
SERVER = (
    "gateway.store",
    "gateway.redis",
    "gateway.protocol",
    "gateway.admin",
    "gateway.settings",
    "gateway.app.build",
)


def test_a_provider_imports_no_server() -> None:
    """Ours: the client of providers needs two packages, and no part of the server (PRG-1)."""
    program = "import gateway.provide, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True, timeout=60)
    found = set(done.stdout.split())
    packages = {name.partition(".")[0] for name in found} - sys.stdlib_module_names - OF_PYTHON

    assert {name for name in packages if not name.startswith("_")} <= ALLOWED
    assert not [name for name in found if name.startswith(SERVER)]
