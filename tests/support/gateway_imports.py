"""All that processes of the gateway import, for the process that they are forked from."""

import importlib

from tests.support.forks import PRELOADED

for _name in PRELOADED:
    importlib.import_module(_name)
