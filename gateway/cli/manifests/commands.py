"""`gateway diff`, `plan`, `apply`: manifests compared with a gateway, and applied to it."""

from collections.abc import Sequence
from pathlib import Path

import click

from gateway.cli.client.admin_context import AdminContext, confirm
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.options import yes_option
from gateway.cli.manifests.differences import is_different, render, summary
from gateway.cli.manifests.documents import DocumentReader
from gateway.cli.manifests.files import FileReader
from gateway.cli.manifests.generated_secrets import STANDARD_OUTPUT, GeneratedSecrets
from gateway.cli.manifests.local_secrets import SecretValues
from gateway.cli.manifests.manifest import ManifestReader
from gateway.cli.manifests.options import ManifestArguments, manifest_options, output_option
from gateway.cli.manifests.places import ManifestFaults
from gateway.cli.manifests.plan_file import new_plan, read_plan
from gateway.cli.manifests.tenant_request import OBJECTS, Permissions, TenantRequest, objects_of, requests_for
from gateway.cli.manifests.tenant_runs import Outcome, TenantRun, TenantRuns
from gateway.cli.output.printing import Shown, echo, join


@click.command("diff")
@manifest_options
def diff(context: AdminContext, /, wanted: ManifestArguments) -> None:
    """Compare manifests with the gateway, and change nothing.

    The exit code is 0 if they are equal, and 8 if they differ. A variable of a secret that is not set is a warning: the
    stored secret counts as equal.

    \b
    Example:
      gateway diff -f platform/
      gateway export | gateway diff -f -
    """
    requests = _read(context, wanted)
    runs = _runs(context, requests, is_lenient=True)
    runs.preview()
    for run in runs.accepted:
        run.outcome = Outcome.DIFFERENT if is_different(run.response) else Outcome.EQUAL
    _show(context, runs)
    _end(runs, ExitCode.DIFFERENT if any(run.outcome is Outcome.DIFFERENT for run in runs.runs) else ExitCode.OK)


@click.command("plan")
@output_option("The file of the plan, for `gateway apply PLAN`.")
@manifest_options
def plan(context: AdminContext, /, wanted: ManifestArguments, output: Path | None) -> None:
    """Compare manifests with the gateway, and write a plan, which `gateway apply PLAN` executes within 24 hours.

    A plan holds no secret. It is refused if an object that it names has changed since.

    \b
    Example:
      gateway plan -f platform/ --set platform --prune -o release.plan
      gateway apply release.plan --yes
    """
    if output is None:
        raise Failure("give -o FILE for the plan, or use `gateway diff`", ExitCode.USAGE)
    runs = _runs(context, _read(context, wanted))
    runs.preview()
    if not runs.failed:
        new_plan([run.request for run in runs.runs]).write(output)
        for run in runs.runs:
            run.outcome = Outcome.PLANNED
    _show(context, runs)
    _end(runs)


@click.command("apply")
@click.argument("plan_file", metavar="[PLAN]", type=click.Path(path_type=Path), required=False)
@yes_option
@click.option(
    "--continue", "goes_on", is_flag=True, help="Go on with other tenants after a refusal; otherwise, stop there."
)
@click.option(
    "--secrets",
    metavar="FILE",
    help="A new file, private to you, for the secrets that the gateway generates; - prints them.",
)
@manifest_options
def apply(
    context: AdminContext,
    /,
    wanted: ManifestArguments,
    plan_file: Path | None,
    *,
    yes: bool,
    goes_on: bool,
    secrets: str | None,
) -> None:
    """Make the objects of each tenant those of the manifests, or of PLAN: one transaction for each tenant.

    Shows the differences and asks before it changes anything. Objects that are equal are not written, so a command
    that stopped at one tenant is repeated to go on. The exit code is 9 if only some tenants failed.

    \b
    Example:
      gateway apply -f platform/
      gateway apply -f platform/ --set platform --prune --commit "$COMMIT" --yes --secrets new-secrets.json
      gateway apply release.plan --yes
    """
    if plan_file is None:
        requests = _read(context, wanted)
    elif wanted.files or wanted.permissions != Permissions():
        raise Failure("PLAN has its manifests and options already; give it alone", ExitCode.USAGE)
    else:
        requests = _of_tenant(context, read_plan(plan_file, leaves_folder=wanted.leaves_folder).requests)
    runs = _runs(context, requests)
    runs.preview()
    if not runs.failed or goes_on:
        _apply_all(context, runs, secrets, is_sure=yes, goes_on=goes_on)
    else:
        _show(context, runs)
    _end(runs)


def _apply_all(context: AdminContext, runs: TenantRuns, secrets: str | None, *, is_sure: bool, goes_on: bool) -> None:
    """Apply what differs, after a confirmation; tenants with equal objects need no request."""
    changed = [run for run in runs.accepted if is_different(run.response)]
    for run in runs.accepted:
        run.outcome = Outcome.NOT_TRIED if run in changed else Outcome.EQUAL
    generated = GeneratedSecrets(target=secrets, is_in_report=context.as_json and secrets == STANDARD_OUTPUT)
    if changed:
        if not is_sure:
            echo(_text(runs), err=context.as_json)
        numbers = summary([run.response for run in changed])
        confirm(f"Apply to {', '.join(run.request.tenant for run in changed)}: {numbers}?", is_sure=is_sure)
        generated.prepare([run.response for run in changed])
    try:
        for run in changed:
            if runs.apply(run):
                objects = generated.take(run.request.tenant, objects_of(run.response))
                run.response = {**run.response, OBJECTS: objects}
            elif not goes_on:
                break
    finally:
        _show(context, runs, is_short=bool(changed) and not is_sure)
        generated.finish()


def _read(context: AdminContext, wanted: ManifestArguments) -> Sequence[TenantRequest]:
    """Read the manifests of the files.

    Raises:
        Failure: no file is given, or there are faults: it has those of all files.
    """
    if not wanted.files:
        raise Failure("give manifests with -f: a file, a folder, or - for standard input", ExitCode.USAGE)
    faults, leaves_folder = ManifestFaults(), wanted.leaves_folder
    texts = FileReader(faults=faults, leaves_folder=leaves_folder).read(wanted.files)
    documents = DocumentReader(faults=faults).read(texts)
    manifests = ManifestReader(faults=faults, tenant=context.tenant, leaves_folder=leaves_folder).read(documents)
    faults.check()
    if not manifests:
        raise Failure(f"{', '.join(wanted.files)}: no manifest found", ExitCode.USAGE)
    return requests_for(manifests, wanted.permissions)


def _of_tenant(context: AdminContext, requests: Sequence[TenantRequest]) -> Sequence[TenantRequest]:
    """The requests of a plan, if they are for the selected tenant.

    Raises:
        Failure: one is for another tenant than `--tenant` or `GATEWAY_TENANT`.
    """
    others = [one.tenant for one in requests if context.tenant and one.tenant != context.tenant]
    if others:  # guard: plan-one-tenant
        raise Failure(f"the plan is for {others[0]}, not for {context.tenant}", ExitCode.USAGE)
    return requests


def _runs(context: AdminContext, requests: Sequence[TenantRequest], *, is_lenient: bool = False) -> TenantRuns:
    """The runs with the secrets of this machine; a lenient command warns of those that cannot be read."""
    faults = ManifestFaults()
    values = SecretValues()
    for one in requests:
        values.read(one.secrets, faults)
    if not is_lenient:
        faults.check()
    for fault in faults.found:
        echo(f"warning: {fault.pointer}: {fault.reason}; the stored secret counts as equal", err=True)
    return TenantRuns(admin=context.admin, values=values, runs=[TenantRun(request=one) for one in requests])


def _text(runs: TenantRuns) -> Shown:
    return join(render(run.request.tenant, run.response) for run in runs.runs if run.response)


def _short_text(runs: TenantRuns) -> str:
    return "\n".join(f"tenant {run.request.tenant}: {run.outcome}" for run in runs.runs)


def _show(context: AdminContext, runs: TenantRuns, *, is_short: bool = False) -> None:
    report = {"tenants": [run.report() for run in runs.runs]}
    context.show(report, lambda: _short_text(runs) if is_short else _text(runs))
    runs.show_failures()


def _end(runs: TenantRuns, code: int = ExitCode.OK) -> None:
    """End the command with the code of the failures, or with this one."""
    click.get_current_context().exit(runs.exit_code() or code)
