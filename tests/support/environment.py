"""The variables of a test process: none of the person who started it decides what a gateway or a client does."""

import os

_LOOK = ("ALL_PROXY", "all_proxy", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "PY_COLORS")
_OWN_HOSTS = "localhost,.localhost,127.0.0.1,::1"


def forget_callers_variables() -> None:
    """Remove settings of a gateway and of terminals, and keep clients of loopback from proxies.

    Proxies stay for programs that fetch packages, but for `ALL_PROXY`: HTTP clients refuse to start with a SOCKS proxy
    that they cannot use.
    """
    for name in [name for name in os.environ if name.startswith("GATEWAY_") or name in _LOOK]:
        del os.environ[name]
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (_OWN_HOSTS, os.environ.get(name))))
