"""Health probes: `/healthz` reports liveness of the process, `/readyz` the readiness of this replica.

Both need no credential. Failing components and their reasons are returned only to requests with a monitoring key;
each change is logged.
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
_CACHE_S = 0.25


def _never_sees_reasons(_: Request) -> bool:
    return False


def health_routes(
    checks: Sequence[Check],
    *,
    is_draining: Callable[[], bool],
    sees_reasons: Callable[[Request], bool] = _never_sees_reasons,
) -> list[Route]:
    """Return the routes. A check is a component's name, and a function that raises if the component is unavailable."""
    readiness = ReadinessProbe(checks)

    async def healthz(_: Request) -> Response:
        return _answer(200, {"status": "alive"})

    async def readyz(request: Request) -> Response:
        if is_draining():
            return _answer(503, {"status": "draining"})
        failing = await readiness.failing()
        if not failing:
            return _answer(200, {"status": "ready"})
        reasons = {"failing": failing} if sees_reasons(request) else {}  # guard: readyz-no-reasons
        return _answer(503, {"status": "unready", **reasons})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class ReadinessProbe:
    """Evaluates the readiness checks and reports the failing components.

    A result is reused for 0.25 s, so frequent probes cost little.
    """

    def __init__(self, checks: Sequence[Check]) -> None:
        self._checks = tuple(checks)
        self._lock = anyio.Lock()
        self._found: list[dict[str, str]] = []
        self._found_at = -math.inf

    def expire(self) -> None:
        """Drop the cached result, so that the next probe runs the checks again."""
        self._found_at = -math.inf

    async def failing(self) -> list[dict[str, str]]:
        """Return the failing components and their reasons, in the order of the checks."""
        async with self._lock:
            if time.monotonic() - self._found_at >= _CACHE_S:
                found = await self._run_checks()
                self._log_change(found)
                self._found = found
                self._found_at = time.monotonic()
            return self._found

    def _log_change(self, found: list[dict[str, str]]) -> None:
        """Log a change in the list of failing components; a change of the reasons alone is not logged."""
        if [one["part"] for one in found] == [one["part"] for one in self._found]:
            return
        if found:
            log.warning("readiness_lost", failing=found)
        else:
            log.info("readiness_regained")

    async def _run_checks(self) -> list[dict[str, str]]:
        reasons: dict[str, str] = {}
        async with anyio.create_task_group() as tasks:
            for part, check in self._checks:
                tasks.start_soon(_run_check, part, check, reasons)
        return [{"part": part, "reason": reasons[part]} for part, _ in self._checks if part in reasons]


async def _run_check(part: str, check: Callable[[], Awaitable[None]], reasons: dict[str, str]) -> None:
    try:
        with anyio.fail_after(_CHECK_S):
            await check()
    except TimeoutError:
        reasons[part] = f"no response within {_CHECK_S:g} seconds"
    except GatewayError as error:
        reasons[part] = error.message
    except Exception:
        reasons[part] = "failed; see the log"
        log.exception("check_failed", part=part)


def _answer(status: int, body: object) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json", headers={"cache-control": "no-store"})
