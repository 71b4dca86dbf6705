"""The files of an uploaded archive: zip, tar and tar.gz, unpacked in memory and within limits.

Nothing is written to disk. Directories are skipped. A link, a device in a tar, an absolute path or `..` causes the
whole archive to be refused.
"""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import NoReturn

from gateway.errors import DocumentTooLarge, Fault, InvalidDocument
from gateway.openapi.document.json_access import quote_text
from gateway.openapi.document.limits import FREE_BYTES, MAX_FILES, MAX_PATH_LENGTH, MAX_RATIO, MAX_UNPACKED_BYTES

_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_MAGIC = b"ustar"
_TAR_MAGIC_AT = 257
_TAR_OVERHEAD = 2048
"""Bytes per member allowed for the headers and padding of a tar."""
_STORED_OR_DEFLATED = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_LINK = 0o120000
_TYPES = 0o170000
_ENCRYPTED = 0x1
_CHUNK = 1024 * 1024


def unpack(raw: bytes) -> Mapping[str, bytes]:
    """Return the files of the archive by path.

    Raises:
        InvalidDocument: the archive is broken or unsupported, or has a forbidden member.
        DocumentTooLarge: the archive exceeds a limit.
    """
    try:
        if raw.startswith(_ZIP):
            return _collect(_zip_members(raw), len(raw))
        tar = _inflate(raw) if raw.startswith(_GZIP) else raw
        if tar[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
            return _collect(_tar_members(tar), len(raw))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError, OSError, RuntimeError) as error:
        if isinstance(error, RecursionError):
            raise
        raise InvalidDocument(f"The archive is broken: {error}.") from error
    raise InvalidDocument("The archive is neither zip nor tar nor tar.gz.")


def _collect(members: Iterator[tuple[str, bytes]], packed: int) -> Mapping[str, bytes]:
    files: dict[str, bytes] = {}
    total = 0
    for name, content in members:
        path = _path(name)
        if path in files:
            _refuse(name, "occurs twice")
        files[path] = content
        total += len(content)
        _check_size(total, packed)
        if len(files) > MAX_FILES:
            raise DocumentTooLarge(f"The archive has more than {MAX_FILES} files.")
    return files


def _check_size(unpacked: int, packed: int) -> None:
    if unpacked > MAX_UNPACKED_BYTES:
        raise DocumentTooLarge(f"The archive unpacks to more than {MAX_UNPACKED_BYTES // 2**20} MiB.")
    if unpacked > max(FREE_BYTES, packed * MAX_RATIO):
        raise DocumentTooLarge(f"The archive unpacks to more than {MAX_RATIO} times its size.")


def _zip_members(raw: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for member in archive.infolist():
            if (member.external_attr >> 16) & _TYPES == _LINK:
                _refuse(member.filename, "is a link")
            if member.is_dir():
                _path(member.filename)
                continue
            if member.flag_bits & _ENCRYPTED:
                _refuse(member.filename, "is encrypted")
            if member.compress_type not in _STORED_OR_DEFLATED:
                _refuse(member.filename, "is neither stored nor deflated")
            with archive.open(member) as file:
                yield member.filename, file.read(MAX_UNPACKED_BYTES + 1)


def _tar_members(raw: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
        for member in archive:
            if member.isdir():
                _path(member.name)
            elif not member.isreg() or member.issparse():
                _refuse(member.name, "is a link, a device or a sparse file")
            else:
                file = archive.extractfile(member)
                yield member.name, file.read(MAX_UNPACKED_BYTES + 1) if file is not None else b""


def _inflate(raw: bytes) -> bytes:
    """Decompresses a gzip; raises `DocumentTooLarge` above the size of a tar with as many files as the limits allow."""
    limit = MAX_UNPACKED_BYTES + MAX_FILES * _TAR_OVERHEAD
    allowed = min(limit, max(FREE_BYTES, len(raw) * MAX_RATIO) + MAX_FILES * _TAR_OVERHEAD)
    inflater = zlib.decompressobj(wbits=31)
    out = bytearray()
    pending = raw
    while pending:
        out += inflater.decompress(pending, _CHUNK)
        pending = inflater.unconsumed_tail
        if inflater.eof and (rest := inflater.unused_data.lstrip(b"\0")):  # a gzip may have several members (RFC 1952)
            inflater, pending = zlib.decompressobj(wbits=31), rest
        if len(out) > allowed:
            raise DocumentTooLarge(
                f"The archive unpacks to more than {MAX_UNPACKED_BYTES // 2**20} MiB or {MAX_RATIO} times its size."
            )
    if not inflater.eof:
        raise EOFError("the gzip data is truncated")
    return bytes(out)


def _path(name: str) -> str:
    """The normalised path of a member, relative to the archive's root."""
    if len(name) > MAX_PATH_LENGTH or "\0" in name or "\\" in name:
        _refuse(name, "has an invalid path")
    if name.startswith("/") or name[1:2] == ":":
        _refuse(name, "has an absolute path")
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if ".." in parts:
        _refuse(name, "leads out of the archive")
    return "/".join(parts)


def _refuse(name: str, reason: str) -> NoReturn:
    text = f"{quote_text(name)} {reason}"
    raise InvalidDocument(f"The archive is refused: {text}.", faults=[Fault(pointer="", reason=text)])
