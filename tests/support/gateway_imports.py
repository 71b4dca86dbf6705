"""All that processes of the gateway and of its tests import, for the process that they are forked from."""

import importlib

from tests.support.forks import PRELOADED

for _name in ("hypothesis.strategies", "mcp.client", "tests.support.authorization", "tests.support.stand", *PRELOADED):
    importlib.import_module(_name)
