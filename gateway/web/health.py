"""Health probes: `/healthz` reports liveness of the process, `/readyz` the readiness of this replica.

Both need no credential. A replica without one of its parts may serve calls all the same: it is `degraded`, and the
status stays 200, because the outage of a shared server must not take every replica from a balancer at once. Failing
parts and their reasons are returned only to requests with a monitoring key; each change is logged.
"""

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import anyio
import orjson
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.errors import GatewayError, Unavailable
from gateway.web.limits import CACHE_S, CHECK_S

log = structlog.get_logger(__name__)

Check = tuple[str, Callable[[], Awaitable[None]]]

Serves = Callable[[Mapping[str, float]], bool]
"""True if calls succeed without the failing parts, given the seconds since each of them last worked."""


class Workers(Protocol):
    """The worker processes of this machine."""

    @property
    def are_complete(self) -> bool:
        """True if every configured worker serves."""
        ...

    serving: int
    configured: int


def _never_serves(_: Mapping[str, float]) -> bool:
    return False


def _never_sees_reasons(_: Request) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ReadinessState:
    """The status of a replica, and its failing parts with their reasons, in the order of the checks."""

    status: Literal["ready", "degraded", "unready"]
    failing: Sequence[Mapping[str, str]] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the failing parts."""
        return tuple(one["part"] for one in self.failing)


def health_routes(
    readiness: "ReadinessProbe",
    *,
    is_draining: Callable[[], bool],
    sees_reasons: Callable[[Request], bool] = _never_sees_reasons,
    workers: Workers | None = None,
) -> list[Route]:
    """Return the routes of both probes. A worker is degraded while another one of its machine does not serve."""

    async def healthz(_: Request) -> Response:
        return _answer(200, {"status": "alive"})

    async def readyz(request: Request) -> Response:
        if is_draining():
            return _answer(503, {"status": "draining"})
        found = await readiness.examine()
        # guard: readyz-no-reasons
        reasons: dict[str, object] = {"failing": found.failing} if found.failing and sees_reasons(request) else {}
        status = found.status
        if workers is not None and status == "ready" and not workers.are_complete:
            status = "degraded"
        if workers is not None and sees_reasons(request):
            reasons["workers"] = {"serving": workers.serving, "configured": workers.configured}
        return _answer(503 if status == "unready" else 200, {"status": status, **reasons})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


class ReadinessProbe:
    """Evaluates the readiness checks. A result is reused for 0.25 s, so frequent probes cost little.

    A check is a part's name, and a function that raises if the part is unavailable. Without `serves`, every part is
    needed.
    """

    def __init__(self, checks: Sequence[Check], *, serves: Serves = _never_serves) -> None:
        self._checks = tuple(checks)
        self._serves = serves
        self._lock = anyio.Lock()
        self._worked_at: dict[str, float] = {}
        self.state = ReadinessState("ready")
        """The last result."""
        self._examined_at = -math.inf

    @property
    def parts(self) -> Sequence[str]:
        """The names of all parts."""
        return [part for part, _ in self._checks]

    def expire(self) -> None:
        """Drop the cached result, so that the next probe runs the checks again."""
        self._examined_at = -math.inf

    async def examine(self) -> ReadinessState:
        """Return the state of this replica, from checks that are at most 0.25 s old."""
        async with self._lock:
            if time.monotonic() - self._examined_at >= CACHE_S:
                before, self.state = self.state, self._judge(await self._run_checks())
                self._examined_at = time.monotonic()
                _log_change(before, self.state)
            return self.state

    def _judge(self, failing: Sequence[Mapping[str, str]]) -> ReadinessState:
        if not failing:
            return ReadinessState("ready")
        now = time.monotonic()
        since = {one["part"]: now - self._worked_at.get(one["part"], -math.inf) for one in failing}
        return ReadinessState("degraded" if self._serves(since) else "unready", failing)

    async def _run_checks(self) -> Sequence[Mapping[str, str]]:
        reasons: dict[str, str] = {}
        async with anyio.create_task_group() as tasks:
            for part, check in self._checks:
                tasks.start_soon(self._run_check, part, check, reasons)
        return [{"part": part, "reason": reasons[part]} for part, _ in self._checks if part in reasons]

    async def _run_check(self, part: str, check: Callable[[], Awaitable[None]], reasons: dict[str, str]) -> None:
        try:
            with anyio.fail_after(CHECK_S):
                await check()
        except TimeoutError:
            reasons[part] = f"no response within {CHECK_S:g} seconds"
        except GatewayError as error:
            reasons[part] = error.cause if isinstance(error, Unavailable) else error.message
        except Exception:
            reasons[part] = "failed; see the log"
            log.exception("check_failed", part=part)
        else:
            self._worked_at[part] = time.monotonic()


def _log_change(before: ReadinessState, after: ReadinessState) -> None:
    """Log a change of the status or in the list of failing parts; a change of the reasons alone is not logged."""
    if (before.status, before.parts) == (after.status, after.parts):
        return
    if after.status == "ready":
        log.info("readiness_regained")
    else:
        event = "readiness_lost" if after.status == "unready" else "readiness_degraded"
        log.warning(event, failing=after.failing)


def _answer(status: int, body: object) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json", headers={"cache-control": "no-store"})
