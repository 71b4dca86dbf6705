"""Acceptance of a call's arguments: validation, the reading of other spellings, and the prepared call.

Everything after it sees the accepted arguments only: policy, guardrails, recorded arguments, preparation and approval.
"""

from collections.abc import Mapping

from anyio.lowlevel import checkpoint

from gateway.calls.arguments.costly_validation import CostlyValidation
from gateway.calls.safeguards import BoundCall
from gateway.definitions.json_schema.coercion import has_odd_files
from gateway.definitions.json_schema.validator import Checked, DeferredCheck, Validator
from gateway.domain.identifiers import TenantId
from gateway.errors import ArgumentsInvalid
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import NeedsCredentials, Prepared, UncheckedCall


class ArgumentAcceptance:
    """Accepts the arguments of the calls of this replica."""

    def __init__(self, checks: CostlyValidation) -> None:
        self._checks = checks

    async def accept(
        self, bound: BoundTool, settled: Mapping[str, object], found: Checked | None = None
    ) -> Mapping[str, object]:
        """Return settled arguments in the form in which the call uses them; `found` is the result of their check.

        Raises:
            ArgumentsInvalid: the arguments do not match the tool's input schema.
            CredentialMissing: they do not match, and the call needs a credential that is not stored.
            LimitExceeded, Unavailable: the arguments cannot be checked now.
        """
        found = bound.validator.check(settled) if found is None else found
        if not found and not bound.validator.has_files:
            return settled
        try:
            return await self.read(bound.tenant, bound.validator, settled, found)
        except ArgumentsInvalid:
            if isinstance(bound.handler, NeedsCredentials):
                await bound.handler.require_credentials()  # better arguments would not help
            raise

    async def read(
        self, tenant: TenantId, validator: Validator, arguments: Mapping[str, object], found: Checked
    ) -> Mapping[str, object]:
        """Return arguments that conform unchanged, others as they can be read, if exactly one reading conforms.

        Raises:
            ArgumentsInvalid: no reading conforms, or several do.
            LimitExceeded, Unavailable: see `accept`.
        """
        faults = await self._checks.finish(tenant, found) if isinstance(found, DeferredCheck) else found
        if not faults and not has_odd_files(arguments):
            return arguments
        accepted: list[Mapping[str, object]] = []
        for reading in validator.readings(arguments):
            await checkpoint()  # each check may take as long as the check of the arguments
            if not await self._checks.check(tenant, validator, reading):
                accepted.append(reading)
        if len(accepted) == 1:  # guard: coercion-unique
            return accepted[0]
        if faults:  # guard: arguments-validated
            raise ArgumentsInvalid("the arguments do not match the tool's input schema", faults=faults)
        return arguments

    async def prepare(self, bound: BoundCall, accepted: Mapping[str, object]) -> Prepared:
        """Return the call for accepted arguments; see `Handler.prepare`."""
        try:
            return bound.handler.prepare(accepted)
        except UncheckedCall as unchecked:
            return await self.resume(bound.tenant, unchecked)

    async def resume(self, tenant: TenantId, unchecked: UncheckedCall) -> Prepared:
        """Check the arguments that a handler has merged, in a child process if necessary, and return the call.

        Raises:
            ArgumentsInvalid: they do not match the schema of the operation.
        """
        faults = await self._checks.finish(tenant, unchecked.check)
        if faults:  # guard: merged-arguments-validated
            raise ArgumentsInvalid("the arguments do not match the operation's input schema", faults=faults)
        return unchecked.resume()
