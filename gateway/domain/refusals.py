"""Refusals of the admin API that belong to one kind of request: branches of the tree in `gateway.errors`.

BadInput
└── IdempotencyKeyReused    an Idempotency-Key that belongs to another request
Conflict
├── RequestInProgress       the request with this Idempotency-Key runs now
├── AnswerNotKept           it was done, and its answer cannot be repeated
└── RemovalsRefused         a change that would remove tools, without the permission to
"""

from gateway.errors import BadInput, Conflict


class IdempotencyKeyReused(BadInput):
    """A request under an Idempotency-Key that the same principal used for another one."""

    code = "idempotency.key_reused"


class RequestInProgress(Conflict):
    """A request whose first copy, under the same Idempotency-Key, has no answer yet."""

    code = "idempotency.in_progress"


class AnswerNotKept(Conflict):
    """A repeated request that was done, but whose answer was too large to keep, or was lost with its replica."""

    code = "idempotency.answer_not_kept"


class RemovalsRefused(Conflict):
    """A change of a source that would remove tools, sent without `allow_removals`."""

    code = "source.removals_refused"
