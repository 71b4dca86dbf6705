"""Imports of the fork server, from which workers are forked: they share the memory of the modules.

The fork server ends with its supervisor. A signal to the whole process group must not end it earlier, because the
exit of a worker is read from it.
"""

import gc
import importlib
import signal

importlib.import_module("gateway.app.workers.worker")  # with it, all modules of a replica are imported
for _number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, signal.SIG_IGN)
gc.collect()
gc.freeze()  # so that the collector of a worker does not write to shared pages
