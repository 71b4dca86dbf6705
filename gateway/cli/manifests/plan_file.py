"""Plans: the requests of one run in a file, which is applied later if nothing that it names has changed.

A plan holds no secret, but the references to variables and files, which `apply` reads. It is checked like a manifest.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, pick, read_json, text_at, to_list, to_objects
from gateway.cli.manifests.documents import measure
from gateway.cli.manifests.limits import MAX_BYTES, MAX_TEXT, MAX_VALUES, PLAN_LIFETIME_S
from gateway.cli.manifests.local_secrets import find_secret, references
from gateway.cli.manifests.members import KIND, map_secrets, members_by_name
from gateway.cli.manifests.places import ManifestFaults, Place
from gateway.cli.manifests.tenant_request import MEMBERS, OBJECTS, TenantRequest
from gateway.kinds.manifests import MANIFEST_KINDS

_FORMAT = "gateway/plan/v1"
_READ_FORMATS = (_FORMAT,)
"""The format versions that this release reads: its own, and that of the release before."""
_LIFETIME = timedelta(seconds=PLAN_LIFETIME_S)
_TENANT, _BODY = "tenant", "body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The requests of one run with the versions that they expect, and the time until which they may be applied."""

    requests: Sequence[TenantRequest]
    expires_at: datetime

    def write(self, path: Path) -> None:
        """Write the plan to a file.

        Raises:
            Failure: the file cannot be written.
        """
        tenants = [{_TENANT: one.tenant, _BODY: references(one.body)} for one in self.requests]
        content = {"format": _FORMAT, "expires_at": self.expires_at.isoformat(), "tenants": tenants}
        try:
            path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise Failure(f"cannot write {path}: {error.strerror or error}", ExitCode.USAGE) from None


def new_plan(requests: Sequence[TenantRequest]) -> Plan:
    """A plan of these requests."""
    return Plan(requests=requests, expires_at=datetime.now(UTC).replace(microsecond=0) + _LIFETIME)


def read_plan(path: Path, *, leaves_folder: bool) -> Plan:
    """Read a plan. The paths of its secrets are relative to the current folder, and do not leave it.

    Raises:
        Failure: it cannot be read, has another format, or has expired.
    """
    content = _read(path)
    if content.get("format") not in _READ_FORMATS:
        raise Failure(f"{path} is not a plan in the format {' or '.join(_READ_FORMATS)}", ExitCode.USAGE)
    expires_at = _expiry(path, content)
    faults = ManifestFaults()
    found = [_request(path, one, faults, leaves_folder=leaves_folder) for one in to_objects(content.get("tenants"))]
    faults.check()
    if not found:
        raise Failure(f"{path} has no requests", ExitCode.USAGE)
    return Plan(requests=found, expires_at=expires_at)


def _read(path: Path) -> JsonObject:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror or error}", ExitCode.USAGE) from None
    if len(raw) > MAX_BYTES:  # guard: plan-bytes
        raise Failure(f"{path} has more than {MAX_BYTES // 1024 // 1024} MiB", ExitCode.USAGE)
    try:
        content = read_json(raw.decode("utf-8"))
        measure(content, values=MAX_VALUES, text=MAX_TEXT)
    except ValueError as error:
        raise Failure(f"{path} is not a plan: {error}", ExitCode.USAGE) from None
    return content if is_object(content) else {}


def _expiry(path: Path, content: JsonObject) -> datetime:
    try:
        expires_at = datetime.fromisoformat(text_at(content, "expires_at"))
        left = expires_at - datetime.now(UTC)
    except (ValueError, TypeError):  # no time, or one without a zone
        raise Failure(f"{path}: `expires_at` is not a time", ExitCode.USAGE) from None
    if not timedelta() < left <= _LIFETIME:  # guard: plan-expiry
        raise Failure(f"{path} has expired: a plan is valid for {_LIFETIME}; make a new one", ExitCode.CONFLICT)
    return expires_at


def _request(path: Path, one: JsonObject, faults: ManifestFaults, *, leaves_folder: bool) -> TenantRequest:
    body = one.get(_BODY)
    tenant = text_at(one, _TENANT)
    objects = to_objects(pick(body, OBJECTS))
    file = f"{path}, tenant {tenant}"
    places = [Place(file=file, number=number, is_only=False) for number in range(1, len(objects) + 1)]
    if not tenant or not is_object(body) or len(to_list(body.get(OBJECTS))) != len(objects):
        faults.add([Place(file=str(path)).fault("/tenants", "must have requests with a tenant and objects")])
        return TenantRequest(tenant=tenant, body={}, places=places)
    located = [
        _located(each, place, faults, leaves_folder=leaves_folder) for each, place in zip(objects, places, strict=True)
    ]
    return TenantRequest(tenant=tenant, body={**body, OBJECTS: located}, places=places)


def _located(one: JsonObject, place: Place, faults: ManifestFaults, *, leaves_folder: bool) -> JsonObject:
    """The object with references in the form of the command; a literal secret is a fault."""
    kind = MANIFEST_KINDS.get(text_at(one, KIND))
    members = one.get(MEMBERS)
    if kind is None or not is_object(members):
        faults.add([place.fault("", "must have a known kind and members")])
        return one

    def find(pointer: str, value: object) -> object:
        try:
            return find_secret(value, place, pointer, leaves_folder=leaves_folder)
        except ValueError as error:
            faults.add([place.fault(pointer, str(error))])
            return None

    by_name = {member.name: member for member in members_by_name(kind).values()}
    return {**one, MEMBERS: map_secrets(by_name, members, find)}
