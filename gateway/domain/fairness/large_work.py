"""Work on large results of calls: on the event loop up to a size, above it in the few threads of `LARGE_RESULTS`."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gateway.domain.fairness.limits import MAX_INLINE_BYTES
from gateway.domain.fairness.thread_kinds import LARGE_RESULTS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ResultBusy
from gateway.errors import LimitExceeded

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def run_large(
    tenant: TenantId, size: int, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Run the function on a value of `size` bytes, in a thread if the value is large; return its result.

    Raises:
        ResultBusy: too much of such work waits, for this tenant or for all; the function was not run.
    """
    if size <= MAX_INLINE_BYTES:  # guard: large-work-off-the-loop
        return function(*args, **kwargs)
    try:
        return await run_in_thread(LARGE_RESULTS, tenant, function, *args, **kwargs)
    except LimitExceeded as error:
        raise result_busy(error) from None


def result_busy(error: LimitExceeded) -> ResultBusy:
    """Return the error of a call that has run, but for whose large result there is no room or no thread."""
    return ResultBusy(
        f"the call has run, but its large result is not returned: {error.message}. Request less data, or make fewer"
        " calls at once",
        retry_after_s=error.retry_after_s,
    )
