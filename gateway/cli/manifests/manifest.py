"""Manifests: documents that name a kind and an object of it, checked against the declarations.

All faults of all documents are collected. The values of members are checked by the gateway.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from gateway.cli.input.declarations import text_in
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.manifests.documents import ManifestDocument
from gateway.cli.manifests.limits import MAX_SHOWN_FAULTS
from gateway.cli.manifests.local_secrets import find_secret
from gateway.cli.manifests.members import (
    KIND,
    describe_unknown,
    kind_name,
    map_secrets,
    members_by_name,
    unknown_members,
)
from gateway.cli.manifests.places import ManifestFaults, Place
from gateway.cli.manifests.source_documents import DOCUMENT, DocumentFile, find_document
from gateway.errors import Fault
from gateway.kinds.manifests import API_VERSION, MANIFEST_KINDS, Declared, key_member
from gateway.kinds.sources import MANAGED_SOURCE

READ_VERSIONS = (API_VERSION,)
"""The format versions that this release reads: its own, and that of the release before."""
VERSION, TENANT, MOVED = "apiVersion", "tenant", "moved"
_REQUIRED = "is required, a text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object that a tenant shall have. Its members have their names of REST; secrets in them are references."""

    place: Place
    tenant: str
    kind: Declared
    key: str | None
    """The name, or the other member that is unique; None for a singleton."""
    members: JsonObject
    moved: str | None = None
    """The former key of the object."""
    document: DocumentFile | None = None
    """The document of a source, if the manifest has its path."""

    def __str__(self) -> str:
        return f"{kind_name(self.kind)} {self.key}" if self.key else kind_name(self.kind)

    @property
    def identity(self) -> tuple[str, str, str | None]:
        """Tenant, kind and key, which one document of a run may have."""
        return (self.tenant, kind_name(self.kind), self.key)


@dataclass(slots=True, kw_only=True)
class ManifestReader:
    """Reads manifests from documents; `tenant` is that of documents without one, and the only one if it is given."""

    faults: ManifestFaults
    tenant: str | None
    leaves_folder: bool
    _seen: dict[tuple[str, str, str | None], Place] = field(default_factory=dict[tuple[str, str, str | None], Place])

    def read(self, documents: Iterable[ManifestDocument]) -> list[Manifest]:
        """Return the manifests of the documents that have no fault, in their order."""
        found: list[Manifest] = []
        for document in documents:
            faults = list(self._own_faults(document))
            kind = MANIFEST_KINDS.get(text_in(document.content, KIND))
            manifest = None if kind is None else self._manifest(document, kind, faults)
            if faults:
                self.faults.add(faults)
            elif manifest is not None:
                found.append(manifest)
        return found

    def _own_faults(self, document: ManifestDocument) -> Iterator[Fault]:
        """Yield the faults of the members that all manifests have."""
        content, place = document.content, document.place
        if content.get(VERSION) not in READ_VERSIONS:
            yield place.fault(f"/{VERSION}", f"must be {' or '.join(READ_VERSIONS)}")
        kinds, name = MANIFEST_KINDS, content.get(KIND)
        if not isinstance(name, str):
            yield place.fault(f"/{KIND}", _REQUIRED)
        elif name not in kinds:
            yield place.fault(f"/{KIND}", describe_unknown(name, kinds))
        else:
            yield from self._key_faults(document, kinds[name])
        tenant = content.get(TENANT, self.tenant)
        if tenant is None:
            yield place.fault(f"/{TENANT}", "is required here, as --tenant or as GATEWAY_TENANT")
        elif not isinstance(tenant, str) or not tenant:
            yield place.fault(f"/{TENANT}", "must be the slug of a tenant")
        elif self.tenant and tenant != self.tenant:  # guard: manifest-one-tenant
            yield place.fault(f"/{TENANT}", f"is another one than --tenant or GATEWAY_TENANT, {self.tenant}")

    def _key_faults(self, document: ManifestDocument, kind: Declared) -> Iterator[Fault]:
        content, place, member = document.content, document.place, key_member(kind)
        if member is not None and not text_in(content, member):
            yield place.fault(f"/{member}", _REQUIRED)
        moved = content.get(MOVED)
        is_name = isinstance(moved, str) and moved not in ("", content.get(member or ""))  # of any type
        if moved is not None and (member is None or not is_name):
            yield place.fault(f"/{MOVED}", "must be the former name of the object")

    def _manifest(self, document: ManifestDocument, kind: Declared, faults: list[Fault]) -> Manifest:
        """The manifest of a document, whose further faults are added to the others."""
        content, place, member = document.content, document.place, key_member(kind)
        own = {VERSION, KIND, TENANT, MOVED, member}
        given = {name: value for name, value in content.items() if name not in own}
        known = members_by_name(kind)
        unknown = islice(unknown_members(known, given), MAX_SHOWN_FAULTS + 1)
        faults += [place.fault(one.pointer, one.reason) for one in unknown]

        def find(pointer: str, value: object) -> object:
            try:
                return find_secret(value, place, pointer, leaves_folder=self.leaves_folder)
            except ValueError as error:
                faults.append(place.fault(pointer, str(error)))
                return None

        members, local = map_secrets(known, given, find), None
        if kind is MANAGED_SOURCE and DOCUMENT in members:
            try:
                members[DOCUMENT], local = find_document(members[DOCUMENT], place, leaves_folder=self.leaves_folder)
            except ValueError as error:
                faults.append(place.fault(f"/{DOCUMENT}", str(error)))
        manifest = Manifest(
            place=place,
            tenant=text_in(content, TENANT) or self.tenant or "",
            kind=kind,
            key=None if member is None else text_in(content, member),
            members={known[name].name: value for name, value in members.items() if name in known},
            moved=text_in(content, MOVED) or None,
            document=local,
        )
        former = self._seen.setdefault(manifest.identity, place)
        if former is not place and manifest.key != "":  # guard: manifest-duplicates
            faults.append(place.fault("", f"{manifest} is declared twice; the other one is in {former}"))
        return manifest
