"""Health probes: the process is alive (`/healthz`), and this replica should receive requests (`/readyz`).

Both respond to every client. The failing parts and their reasons are shown to monitoring only; each change is logged.
"""

import math
import time
from collections.abc import Awaitable, Callable, Sequence

import anyio
import orjson
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.errors import GatewayError

log = structlog.get_logger(__name__)

Check = tuple[str, Callable[[], Awaitable[None]]]

_CHECK_S = 2.0
_FRESH_S = 0.25


def _nobody(_: Request) -> bool:
    return False


def health_routes(
    checks: Sequence[Check], *, is_draining: Callable[[], bool], sees_reasons: Callable[[Request], bool] = _nobody
) -> list[Route]:
    """Return the probes; each check is a part's name and a function that raises when the part cannot serve."""
    readiness = ReadinessProbe(checks)

    async def healthz(_: Request) -> Response:
        return _answer(200, {"status": "alive"})

    async def readyz(request: Request) -> Response:
        if is_draining():
            return _answer(503, {"status": "draining"})
        failing = await readiness.failing()
        if not failing:
            return _answer(200, {"status": "ready"})
        reasons = {"failing": failing} if sees_reasons(request) else {}
        return _answer(503, {"status": "unready", **reasons})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class ReadinessProbe:
    """The parts that cannot serve now. The checks run at most a few times a second, whatever the rate of the probes."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self._checks = tuple(checks)
        self._lock = anyio.Lock()
        self._found: list[dict[str, str]] = []
        self._found_at = -math.inf

    def expire(self) -> None:
        """Run the checks again at the next probe."""
        self._found_at = -math.inf

    async def failing(self) -> list[dict[str, str]]:
        """Return the failing parts and their reasons, in the order of the checks."""
        async with self._lock:
            if time.monotonic() - self._found_at >= _FRESH_S:
                found = await self._ask()
                self._note(found)
                self._found = found
                self._found_at = time.monotonic()
            return self._found

    def _note(self, found: list[dict[str, str]]) -> None:
        """Log a change in the set of failing parts; the reasons alone may differ from one probe to the next."""
        if [one["part"] for one in found] == [one["part"] for one in self._found]:
            return
        if found:
            log.warning("readiness_lost", failing=found)
        else:
            log.info("readiness_regained")

    async def _ask(self) -> list[dict[str, str]]:
        reasons: dict[str, str] = {}
        async with anyio.create_task_group() as tasks:
            for part, check in self._checks:
                tasks.start_soon(_judge, part, check, reasons)
        return [{"part": part, "reason": reasons[part]} for part, _ in self._checks if part in reasons]


async def _judge(part: str, check: Callable[[], Awaitable[None]], reasons: dict[str, str]) -> None:
    try:
        with anyio.fail_after(_CHECK_S):
            await check()
    except TimeoutError:
        reasons[part] = f"no answer within {_CHECK_S:g} seconds"
    except GatewayError as error:
        reasons[part] = error.message
    except Exception:
        log.exception("check_failed", part=part)
        reasons[part] = "failed; the log says why"


def _answer(status: int, body: object) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json", headers={"cache-control": "no-store"})
