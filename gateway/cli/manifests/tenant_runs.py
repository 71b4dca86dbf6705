"""Runs over tenants: each has its own request and transaction, its own outcome, and its part of the report."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import cast

from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.rate_limit import send_within
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure, describe_fault
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.manifests.limits import MAX_WAIT_S
from gateway.cli.manifests.local_secrets import SecretValues
from gateway.cli.manifests.tenant_request import OBJECTS, TenantRequest, objects_of
from gateway.cli.output.printing import echo

_DRY_RUN, _CHANGES = "dry_run", "changes"


class Outcome(StrEnum):
    """The outcome for one tenant in reports."""

    EQUAL = "equal"
    DIFFERENT = "different"
    PLANNED = "planned"
    APPLIED = "applied"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclass(slots=True, kw_only=True)
class TenantRun:
    """One tenant's part of a run; `response` is that of the preview until something is applied."""

    request: TenantRequest
    outcome: Outcome = Outcome.NOT_TRIED
    response: JsonObject = field(default_factory=dict[str, object])
    failure: Failure | None = None

    def report(self) -> JsonObject:
        """The part of the report for `--json`."""
        found: JsonObject = {"tenant": self.request.tenant, "outcome": self.outcome}
        if self.failure is not None:
            found |= {"error": self.failure.message, "exit_code": int(self.failure.exit_code)}
            found |= {"faults": [describe_fault(one) for one in self.failure.faults]}
        return found | {name: self.response[name] for name in ("revision", "objects") if name in self.response}


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRuns:
    """The runs of one command, and the requests that they send."""

    admin: AdminApi
    values: SecretValues
    runs: Sequence[TenantRun]

    def preview(self) -> None:
        """Request the effect on each tenant without changing it. A refusal for one tenant hides none for another."""
        for run in self.runs:
            if (response := self._send(run, is_dry_run=True)) is not None:
                run.response = response
                run.request = run.request.expecting(response)

    def apply(self, run: TenantRun) -> bool:
        """Apply the request of one tenant, if nothing has changed since its preview; False after a refusal."""
        response = self._send(run, is_dry_run=False)
        if response is not None:
            run.response, run.outcome = response, Outcome.APPLIED
        return response is not None

    @property
    def failed(self) -> Sequence[TenantRun]:
        """The runs that failed."""
        return [run for run in self.runs if run.failure is not None]

    @property
    def accepted(self) -> Sequence[TenantRun]:
        """The runs that have not failed."""
        return [run for run in self.runs if run.failure is None]

    def exit_code(self) -> int:
        """0 if no tenant failed, `SOME_FAILED` if something was done for another one, else the code of the failure."""
        failures = [run.failure for run in self.failed if run.failure is not None]
        if not failures:
            return ExitCode.OK
        is_some = any(run.outcome not in {Outcome.FAILED, Outcome.NOT_TRIED} for run in self.runs)
        return ExitCode.SOME_FAILED if is_some else int(failures[0].exit_code)

    def show_failures(self) -> None:
        """Write the failures, and the tenants that were not tried, to standard error."""
        for run in self.runs:
            if run.failure is not None:
                run.failure.show()
        left = [run.request.tenant for run in self.runs if run.outcome is Outcome.NOT_TRIED]
        if left and self.failed:
            echo(f"not tried: {', '.join(left)}; repeat the command to go on", err=True)

    def _send(self, run: TenantRun, *, is_dry_run: bool) -> JsonObject | None:
        """Send the request of one tenant; None after a refusal, which the run has then."""
        body = cast("JsonObject", self.values.fill({**run.request.body, _DRY_RUN: is_dry_run}))
        try:
            if is_dry_run:
                for document in run.request.documents:
                    document.upload(self.admin, run.request.tenant)
            path = path_of("tenants", run.request.tenant, "apply")
            response = send_within(MAX_WAIT_S, lambda: self.admin.send("POST", path, body), partial(echo, err=True))
            changes = [{**one, _CHANGES: self.values.redact_in(one.get(_CHANGES))} for one in objects_of(response)]
            return {**response, OBJECTS: changes}
        except Failure as failure:
            run.failure, run.outcome = self.values.redacted(run.request.located(failure)), Outcome.FAILED
            return None
