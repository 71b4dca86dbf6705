"""A process that measures what checking and explaining takes, with its address space bounded.

`python -m tests.support.refusals` reads one `{"schema", "instance"}` a line and answers one `Measured` a line;
`Refuser` is the other end. What is not bounded by the gateway ends this process, not the tests and not the machine.
"""

import json
import resource
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ADDRESS_SPACE = 1024**3
_ROOT = Path(__file__).parents[2]
_PATIENCE_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One check: its outcome, the memory it took, the bytes of its value."""

    is_costly: bool
    faults: list[str]
    peak_bytes: int
    body_bytes: int


class Refuser:
    """The process, for as long as the block runs."""

    def __enter__(self) -> "Refuser":
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.refusals"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.measure({"propertyNames": {"maxLength": 1}}, {"ab": 1})  # imports of a first refusal are not measured
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def measure(self, schema: dict[str, Any], instance: object, *, examine: bool = False) -> Measured:
        """Check this value against this schema there; `examine` as a child process of the gateway does."""
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        timer = threading.Timer(_PATIENCE_S, self._process.kill)  # the answer is an empty line then
        timer.start()
        try:
            asked.write(json.dumps({"schema": schema, "instance": instance, "examine": examine}) + "\n")
            asked.flush()
            answer = answered.readline()
        finally:
            timer.cancel()
        assert answer, "the process ran out of its memory or its time"
        return Measured(**json.loads(answer))


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(asdict(_measure(asked["schema"], asked["instance"], examine=asked["examine"]))), flush=True)


def _measure(schema: dict[str, Any], instance: object, *, examine: bool) -> Measured:
    from gateway.definitions.json_schema.validator import DeferredCheck, compile_input  # noqa: PLC0415  # within the limit

    validator = compile_input(json.dumps({"name": "t", "inputSchema": schema}).encode())
    raw = json.dumps(instance, separators=(",", ":")).encode()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    before = _status("VmRSS")
    found = validator.check_unbounded(instance, raw) if examine else validator.check(instance)
    peak = max(0, _status("VmHWM") - before)
    is_costly = isinstance(found, DeferredCheck)
    return Measured(
        is_costly=is_costly,
        faults=[] if isinstance(found, DeferredCheck) else [f"{fault.pointer}: {fault.reason}" for fault in found],
        peak_bytes=peak,
        body_bytes=len(raw),
    )


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


if __name__ == "__main__":
    _main()
