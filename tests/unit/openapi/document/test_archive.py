"""Archives: their files come out, and no entry that could lead elsewhere."""

import gzip
import tarfile
from collections.abc import Callable, Mapping

import pytest

from gateway.errors import DocumentTooLarge, InvalidDocument
from gateway.openapi.document.archive import unpack
from gateway.openapi.document.limits import FREE_BYTES, MAX_FILES, MAX_UNPACKED_BYTES
from tests.support.archives import link_to, tar_of, tgz_of, zip_of, zipped_link

FILES = {"a.yaml": b"a: 1", "b/c.json": b"{}"}


@pytest.mark.parametrize(
    "archive",
    [zip_of(FILES), tar_of(FILES), tgz_of(FILES), zip_of({"./a.yaml": b"a: 1", "b/": b"", "b//c.json": b"{}"})],
)
def test_the_files_come_out_under_their_paths(archive: bytes) -> None:
    """Ours: zip, tar and tar.gz hold the same files (OAS-7)."""
    assert unpack(archive) == FILES


@pytest.mark.parametrize("padding", [b"", b"\0" * 512])
def test_a_gzip_of_several_members_is_read_to_its_end(padding: bytes) -> None:
    """RFC 1952 section 2.2: the content is that of all members, one after the other (OAS-7)."""
    tar = tar_of(FILES)
    parts = (tar[:700], tar[700:])

    assert unpack(b"".join(map(gzip.compress, parts)) + padding) == FILES
    with pytest.raises(InvalidDocument):
        unpack(b"".join(map(gzip.compress, parts)) + b"more")


@pytest.mark.parametrize(
    "archive",
    [
        zip_of({"../a.yaml": b""}),
        zip_of({"/etc/passwd": b""}),
        zip_of({"a/../../b": b""}),
        tar_of({"../a.yaml": b""}),
        tar_of({"/a.yaml": b""}),
        tar_of({"a\\b.yaml": b""}),
        tar_of({"c:/b.yaml": b""}),
        tar_of({"a.yaml": b"", "./a.yaml": b"other"}),
        tar_of({}, link_to("/etc/passwd")),
        tar_of({"a.yaml": b""}, link_to("a.yaml", kind=tarfile.LNKTYPE)),
        tar_of({}, link_to("", kind=tarfile.FIFOTYPE)),
        tar_of({}, link_to("", kind=tarfile.CHRTYPE)),
        zipped_link("/etc/passwd"),
        b"",
        b"openapi: 3.1.0",
        gzip.compress(b"openapi: 3.1.0"),
        tgz_of(FILES)[:-20],
        zip_of(FILES)[:-30],
        b"PK\x03\x04" + b"\0" * 100,
    ],
)
def test_a_forbidden_entry_refuses_an_archive(archive: bytes) -> None:
    """Ours: links, devices, paths that leave the archive, names given twice and broken archives are refused (OAS-7)."""
    with pytest.raises(InvalidDocument) as caught:
        unpack(archive)
    assert not isinstance(caught.value, DocumentTooLarge)


@pytest.mark.parametrize(
    "files",
    [
        lambda: {"a": b"0" * (FREE_BYTES + 1)},
        lambda: {f"{number}": b"" for number in range(MAX_FILES + 1)},
        lambda: {f"{number}": b"0" * (MAX_UNPACKED_BYTES // 8) for number in range(10)},
    ],
)
@pytest.mark.parametrize("pack", [zip_of, tgz_of])
def test_an_archive_that_grows_too_large_is_refused(
    pack: Callable[[Mapping[str, bytes]], bytes], files: Callable[[], Mapping[str, bytes]]
) -> None:
    """Ours: ratio, number of files and size are bounded while unpacking, not afterwards (OAS-7)."""
    with pytest.raises(DocumentTooLarge):
        unpack(pack(files()))
