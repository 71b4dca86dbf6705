"""Rotation of all active keys of a tenant, each by a request; the new keys go to a private file or a terminal."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypedDict

import click

from gateway.cli.client.admin_context import AdminContext, confirm
from gateway.cli.client.rate_limit import send_within
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.kinds.places import place_of
from gateway.cli.manifests.generated_secrets import SECRET, STANDARD_OUTPUT, GeneratedSecrets
from gateway.cli.manifests.limits import MAX_WAIT_S
from gateway.cli.output.printing import echo
from gateway.cli.output.progress import Progress
from gateway.cli.output.tables import count, render_table
from gateway.domain.tenancy.keys import KeyState
from gateway.kinds.identity import KEY

_ENDS = frozenset({ExitCode.UNREACHABLE, ExitCode.USAGE})
"""Failures that concern the other keys too."""


class BulkOptions(TypedDict):
    """The options of a rotation of all keys."""

    is_all: bool
    older_than: int | None
    """Only keys whose secret has this age in seconds; None for all."""
    secrets: str | None
    yes: bool


@dataclass(slots=True, kw_only=True)
class _Rotated:
    """One key of the report."""

    id: str
    name: str
    failure: Failure | None = None
    is_tried: bool = False
    text: str = ""

    @property
    def outcome(self) -> str:
        """The outcome for people."""
        if self.failure is not None:
            return f"failed: {self.failure.message}"
        return "rotated" if self.is_tried else "not tried"

    def report(self) -> JsonObject:
        """The part of the report for `--json`."""
        shown: JsonObject = {"id": self.id, "name": self.name, "outcome": self.outcome}
        return {**shown, KEY.generated_as: self.text} if self.text else shown


def rotate_all(context: AdminContext, body: JsonObject | None, options: BulkOptions) -> None:
    """Rotate the keys one by one, and report each; a refusal of one does not stop the others.

    Raises:
        Failure: there is no place for the new keys, or the answer was no.
    """
    found, target = _find(context, options["older_than"]), options["secrets"]
    secrets = GeneratedSecrets(target=target, is_in_report=context.as_json and target == STANDARD_OUTPUT)
    if found:
        confirm(f"Rotate {count(len(found), 'key')} of {context.tenant}?", is_sure=options["yes"])
        secrets.reserve()
    try:
        with Progress() as progress:
            for place, one in enumerate(found, 1):
                progress.stage(f"Rotating key {place} of {len(found)}: {one.name}")
                _rotate(context, one, body, secrets)
                if one.failure is not None and one.failure.exit_code in _ENDS:
                    break
    finally:
        _show(context, found)
        secrets.finish()
    _end(found)


def _find(context: AdminContext, older_than: int | None) -> list[_Rotated]:
    """The active keys, sorted by the age of their secret; the one that this command uses is the last."""
    latest = datetime.now(UTC) - timedelta(seconds=older_than or 0)
    items = [*context.admin.pages(place_of(context, KEY), query={"state": KeyState.ACTIVE.value})]
    aged = sorted((_made_at(item), text_at(item, "id"), text_at(item, "name")) for item in items)
    found = [_Rotated(id=of, name=name) for made_at, of, name in aged if made_at <= latest]
    return sorted(found, key=lambda one: one.id == context.admin.key_id)


def _made_at(item: JsonObject) -> datetime:
    """The time of the newest secret; that of the key if a release stored it that did not note the time."""
    return datetime.fromisoformat(text_at(item, "status", "secret_at") or text_at(item, "created_at"))


def _rotate(context: AdminContext, one: _Rotated, body: JsonObject | None, secrets: GeneratedSecrets) -> None:
    try:
        path = place_of(context, KEY, one.id, "rotate")
        rotated = send_within(
            MAX_WAIT_S, lambda: context.admin.send("POST", path, body), lambda text: echo(text, err=True)
        )
    except Failure as failure:
        one.failure = failure
        return
    one.is_tried = True
    taken = {"kind": KEY.name, "name": f"{one.name} ({one.id})", SECRET: rotated[KEY.generated_as]}
    [left] = secrets.take(context.tenant or "", [taken])
    one.text = text_at(left, SECRET)


def _show(context: AdminContext, found: list[_Rotated]) -> None:
    rows = [(one.id, one.name, one.outcome) for one in found]
    context.show(
        [one.report() for one in found],
        lambda: render_table(("id", "name", "outcome"), rows) if rows else "no key is to be rotated",
    )


def _end(found: list[_Rotated]) -> None:
    failures = [one.failure for one in found if one.failure is not None]
    if failures:
        code = ExitCode.SOME_FAILED if any(one.is_tried for one in found) else failures[0].exit_code
        click.get_current_context().exit(int(code))
