"""The request of `apply` for one tenant: its objects, the permissions of the command, and expected versions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.manifests.local_secrets import LocalSecret, secrets_in
from gateway.cli.manifests.manifest import Manifest
from gateway.cli.manifests.members import KIND, kind_name
from gateway.cli.manifests.places import Place
from gateway.cli.manifests.source_documents import DocumentFile
from gateway.domain.json_access import point, tokens_of
from gateway.errors import Fault
from gateway.kinds.manifests import name_in_manifests

OBJECTS, MEMBERS, EXPECTED = "objects", "members", "expected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The options of a run that decide what `apply` may take over and remove, and the author in the audit trail."""

    owner: str | None = None
    adopt: bool = False
    prune: bool = False
    prune_protected: bool = False
    max_deletions: int | None = None
    commit: str | None = None
    author: str | None = None

    def check(self) -> None:
        """Refuse options that have no effect.

        Raises:
            Failure: one of them needs another one.
        """
        for is_given, option, other, has_other in (
            (self.adopt, "--adopt", "--set", bool(self.owner)),
            (self.prune, "--prune", "--set", bool(self.owner)),
            (self.prune_protected, "--prune-protected", "--prune", self.prune),
            (self.max_deletions is not None, "--max-deletions", "--prune", self.prune),
        ):
            if is_given and not has_other:
                raise Failure(f"{option} has no effect without {other}", ExitCode.USAGE)

    def members(self) -> JsonObject:
        """The members of the body; absent ones have the gateway's default."""
        given: JsonObject = {
            "set": self.owner,
            "adopt": self.adopt or None,
            "prune": self.prune or None,
            "prune_protected": self.prune_protected or None,
            "max_deletions": self.max_deletions,
            "commit": self.commit,
            "author": self.author,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRequest:
    """The body for one tenant, whose secrets are references, and the place of each of its objects."""

    tenant: str
    body: JsonObject
    places: Sequence[Place]
    documents: Sequence[DocumentFile] = ()
    """The documents that sources of the request name by their digest."""

    @property
    def secrets(self) -> Sequence[LocalSecret]:
        """The secrets of all objects."""
        return secrets_in(self.body)

    def expecting(self, preview: JsonObject) -> "TenantRequest":
        """The request that is refused if an object of the preview, or one that these name, has changed since.

        A request of a plan has such versions already.
        """
        if EXPECTED in self.body:
            return self
        moved = {
            (text_at(one, KIND), text_at(one, "to")): one.get("from") for one in to_objects(self.body.get("moved"))
        }
        seen = [*to_objects(preview.get(OBJECTS)), *to_objects(preview.get("references"))]
        expected = [
            {KIND: one.get(KIND), "name": moved.get(_address(one), one.get("name")), "etag": one.get("etag")}
            for one in seen
        ]
        return replace(self, body={**self.body, EXPECTED: expected})

    def located(self, failure: Failure) -> Failure:
        """The failure with the places of its faults in the files."""
        faults = [self._located(one) for one in failure.faults]
        message = f"tenant {self.tenant}: {failure.message}"
        return Failure(message, failure.exit_code, faults=faults, retry_s=failure.retry_s)

    def _located(self, fault: Fault) -> Fault:
        name, number, *rest = [*tokens_of(fault.pointer), "", ""]
        if name != OBJECTS or not number.isdecimal() or int(number) >= len(self.places):
            return fault
        below = [each for each in rest[:-2] if each]
        if below[:1] == [MEMBERS]:
            below = [*map(name_in_manifests, below[1:2]), *below[2:]]
        return self.places[int(number)].fault(point(*below), fault.reason)


def requests_for(manifests: Sequence[Manifest], permissions: Permissions) -> Sequence[TenantRequest]:
    """The request for each tenant, in the order in which the manifests name them."""
    by_tenant: dict[str, list[Manifest]] = {}
    for one in manifests:
        by_tenant.setdefault(one.tenant, []).append(one)
    return [_request(tenant, found, permissions) for tenant, found in by_tenant.items()]


def _request(tenant: str, manifests: Sequence[Manifest], permissions: Permissions) -> TenantRequest:
    objects = [_object(one) for one in manifests]
    moved = [{KIND: kind_name(one.kind), "from": one.moved, "to": one.key} for one in manifests if one.moved]
    body: JsonObject = {OBJECTS: objects, **permissions.members(), **({"moved": moved} if moved else {})}
    documents = [one.document for one in manifests if one.document is not None]
    return TenantRequest(tenant=tenant, body=body, places=[one.place for one in manifests], documents=documents)


def _object(one: Manifest) -> JsonObject:
    return {KIND: kind_name(one.kind), **({"name": one.key} if one.key is not None else {}), MEMBERS: one.members}


def _address(one: JsonObject) -> tuple[str, str]:
    return text_at(one, KIND), text_at(one, "name")


def name_of_object(one: JsonObject) -> str:
    """The kind and name of an object in a response."""
    return " ".join(filter(None, _address(one)))


def objects_of(response: JsonObject) -> Sequence[JsonObject]:
    """The objects of a response."""
    return to_objects(response.get(OBJECTS))
