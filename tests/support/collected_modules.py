"""All modules that pytest collects, for the process from which its test processes are forked.

Each test process would import them, a second of CPU; in a fresh tree each would rewrite and compile them, ten seconds.
A module that cannot be imported is left to them, so that its error is reported.
"""

import sys
from contextlib import suppress
from pathlib import Path

from _pytest.assertion import install_importhook
from _pytest.config import get_config
from _pytest.pathlib import import_path
from hypothesis.configuration import notice_initialization_restarted
from hypothesis.internal.charmap import charmap

_TESTS = Path(__file__).parents[1]


def import_collected() -> None:
    """Import the tests and what their folders share, as pytest does: with asserts rewritten."""
    importers = [*sys.meta_path]
    install_importhook(get_config())
    for path in sorted(path for pattern in ("conftest.py", "test_*.py") for path in _TESTS.rglob(pattern)):
        known = {*sys.modules}
        try:
            import_path(path, mode="importlib", root=_TESTS.parent, consider_namespace_packages=False)
        except BaseException:  # a test module may also skip itself
            for name in {*sys.modules} - known:
                with suppress(KeyError):
                    if getattr(sys.modules[name], "__file__", None) == str(path):
                        del sys.modules[name]
    sys.meta_path[:] = importers


charmap()  # Hypothesis reads it before its first text, and computes it for two seconds in a fresh tree
import_collected()
notice_initialization_restarted(warn=False)  # its plugin, which the test processes load, would refuse to start after it
