"""Reports of a test process to the one that counts: of a test that passed, its call alone.

pytest-xdist sends five messages for each test, with its markers and all that it printed. Writing and reading them takes
1 ms of CPU, so those that nothing reads are not sent. Everything is sent where it may be shown.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

_Send = Callable[..., None]


def report_less(config: pytest.Config) -> None:
    """Send less from a process of pytest-xdist, unless times or what was printed are asked for."""
    option = config.option
    shows_all = option.verbose > 0 or option.durations is not None or set(option.reportchars) & set("pPaA")
    if not hasattr(config, "workerinput") or shows_all or config.pluginmanager.has_plugin("tests.times"):
        return
    for plugin in config.pluginmanager.get_plugins():
        if hasattr(plugin, "sendevent"):
            plugin.sendevent = partial(_send, plugin.sendevent)


def _send(send: _Send, name: str, **notified: Any) -> None:
    report: dict[str, Any] = notified.get("data") or {}
    has_passed = name == "testreport" and report["outcome"] == "passed"
    if name == "logstart" or (has_passed and report["when"] != "call"):
        return
    if has_passed:
        report |= {"keywords": {}, "sections": []}
    send(name, **notified)
