"""An unseen error on the event loop fails the test during which it came, and no other."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
OURS = "from tests.support.loops import anyio_backend, nothing_unseen\n"
MODULE = """
import asyncio, gc
import anyio, pytest

@pytest.fixture(scope="module", autouse=True)
async def something_that_keeps_the_loop():
    yield

@pytest.fixture
async def broken():
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0)  # the callback runs now
    async with anyio.create_task_group():
        yield

async def test_of_it(broken):
    pass

@pytest.mark.parametrize("turn", range(3))
async def test_after_it(turn):
    gc.collect()
    await anyio.sleep(0)  # where a cancellation would be felt
"""


def test_an_unretrieved_error_fails_one_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(OURS)
    (tmp_path / "test_one.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "anyio", "-p", "no:cacheprovider", "-o", "anyio_mode=auto"]
    plain = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=600, check=False)
    assert ran.stdout.rstrip().splitlines()[-1].startswith("4 passed, 1 error"), ran.stdout
    assert "ERROR test_one.py::test_of_it" in ran.stdout
    assert "unseen on the event loop" in ran.stdout
    assert "ZeroDivisionError" in ran.stdout
