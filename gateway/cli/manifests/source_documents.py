"""Documents of sources beside their manifests: read from a path, uploaded by digest, written by `export`.

A manifest has a path or a digest. A request and a plan have the digest only, so a plan holds no document.
"""

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.client.admin_api import AdminApi, path_of
from gateway.cli.client.admin_context import AdminContext
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.documents import is_archive
from gateway.cli.input.json_fields import JsonObject, number_at, text_at, to_object
from gateway.cli.manifests.files import is_inside
from gateway.cli.manifests.limits import MAX_PATH_LENGTH
from gateway.cli.manifests.places import Place
from gateway.domain.members.formats import NAME
from gateway.domain.updates.managed_sources import SHA256, VersionOwner
from gateway.openapi.document.limits import MAX_DOCUMENT_BYTES

DOCUMENT, REFRESH, URL = "document", "refresh", "url"
_CHUNK = 1024 * 1024
_ARCHIVE, _TEXT = "application/zip", "application/yaml"  # any archive, and JSON too: the gateway looks at the bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFile:
    """A document of this machine, and its digest."""

    path: Path
    digest: str

    def upload(self, admin: AdminApi, tenant: str) -> None:
        """Upload the document, unless the tenant has it.

        Raises:
            Failure: the gateway refused it, or the file has changed since it was read.
        """
        place = path_of("tenants", tenant, "documents", self.digest)
        if admin.has(place):
            return
        content = _read_regular(self.path)
        if hashlib.sha256(content).hexdigest() != self.digest:
            raise Failure(f"{self.path} has changed during the command; repeat it", ExitCode.CONFLICT)
        media_type = _ARCHIVE if is_archive(content) else _TEXT
        chunks = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
        admin.upload("PUT", place, chunks, length=len(content), media_type=media_type)


def find_document(value: object, place: Place, *, leaves_folder: bool) -> tuple[object, DocumentFile | None]:
    """The `document` of a request for the one of a manifest, and the file to upload if it is a path.

    Raises:
        ValueError: the path leads out of the folder, or the file is not a small regular one.
    """
    if not isinstance(value, str) or value.startswith(SHA256):
        return value, None
    if not 0 < len(value) <= MAX_PATH_LENGTH or "\0" in value or "://" in value:
        raise ValueError(f"must be a path or {SHA256}DIGEST; a URL is the member `{URL}`")
    path = place.folder / value
    if not leaves_folder and not is_inside(path, place.root):  # guard: manifest-document-traversal
        raise ValueError(f"the path leads out of {place.root}; --allow-outside permits it")
    try:
        digest = hashlib.sha256(_read_regular(path)).hexdigest()
    except OSError as error:
        raise ValueError(f"{os.path.relpath(path)} cannot be read: {error.strerror}") from None
    return f"{SHA256}{digest}", DocumentFile(path=path, digest=digest)


def exported(context: AdminContext, shown: JsonObject, folder: Path | None) -> JsonObject:
    """The members of a manifest that name the origin of a source's document.

    The versions of a source with a URL are the gateway's. Another document is written to the folder; without one, the
    manifest has its digest.

    Raises:
        Failure: the digest of the document is not stored, or the document cannot be written.
    """
    if shown.get(URL) is not None:
        return {REFRESH: VersionOwner.GATEWAY.value}
    name, number = text_at(shown, "name"), str(number_at(to_object(shown.get("status")), "active_version"))
    version = context.admin.get(context.tenant_path("sources", name, "versions", number))
    digest = text_at(version, "digest")
    if not digest:
        raise Failure(f"source {name} is of an earlier release; import its document again", ExitCode.CONFLICT)
    if folder is None:
        return {DOCUMENT: f"{SHA256}{digest}"}
    content = b"".join(context.admin.download(context.tenant_path("documents", digest), {}))
    is_valid = re.fullmatch(NAME, name) and hashlib.sha256(content).hexdigest() == digest
    if not is_valid:  # guard: export-names-files
        raise Failure(f"the gateway returned another name or document for source {name!r}", ExitCode.FAILED)
    path = folder / f"{name}.openapi.{'json' if content.lstrip().startswith(b'{') else 'yaml'}"
    try:
        with path.open("xb") as file:
            file.write(content)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}", ExitCode.USAGE) from None
    return {DOCUMENT: path.name}


def _read_regular(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        ValueError: it is not a small regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for a writer
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # guard: manifest-document-regular
            raise ValueError(f"{os.path.relpath(path)} is not a regular file")
        content = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:  # guard: manifest-document-bytes
        raise ValueError(f"{os.path.relpath(path)} has more than {MAX_DOCUMENT_BYTES // 1024 // 1024} MiB")
    return content
