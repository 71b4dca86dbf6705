"""Errors of the admin API for idempotent requests and source changes; subclasses of errors in `gateway.errors`.

BadInput
└── IdempotencyKeyReused    an Idempotency-Key that belongs to another request
Conflict
├── RequestInProgress       the request with this Idempotency-Key is running
├── AnswerNotKept           the request was done, and its response cannot be repeated
└── RemovalsRefused         a change that would remove tools, without the permission to
"""

from gateway.errors import BadInput, Conflict


class IdempotencyKeyReused(BadInput):
    """The Idempotency-Key was already used by the same principal for another request."""

    code = "idempotency.key_reused"


class RequestInProgress(Conflict):
    """The first request with the same Idempotency-Key has no response yet."""

    code = "idempotency.in_progress"


class AnswerNotKept(Conflict):
    """The request was done, but its response was too large to store, or was lost with its replica."""

    code = "idempotency.answer_not_kept"


class RemovalsRefused(Conflict):
    """The change of a source would remove tools, and was sent without `allow_removals`."""

    code = "source.removals_refused"
