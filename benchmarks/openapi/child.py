"""The child process that imports a document, run from any checkout: its result, CPU and time."""

import gzip
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.openapi.options import DocumentForm, ImportOptions
from gateway.openapi.worker_messages import LENGTH_BYTES, Closing, Task, WorkerAnswer, decode_message, write_frame

TREE = Path(__file__).parents[2]
SPECS = TREE / ".." / "shared" / "specs"
URL = "https://api.example.com"
_ARCHIVES = (".tar.gz", ".tgz", ".zip")
_MEMORY = 1024**3
_CPU_S = 60
_START = "import sys; sys.path.insert(0, {tree!r}); from gateway.openapi.worker import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFile:
    """One document as it is sent."""

    name: str
    raw: bytes
    form: DocumentForm


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the child process. `digest` is that of its whole result."""

    answer: WorkerAnswer
    digest: str
    cpu_s: float
    wall_s: float


def read_files(given: Sequence[Path]) -> Iterator[DocumentFile]:
    """Read these files, and those of these folders; without any, the shared documents."""
    for place in given or [SPECS]:
        paths = sorted(place.iterdir()) if place.is_dir() else [place]
        yield from (_read(path) for path in paths if path.name != "index.json" and path.is_file())


def run_child(file: DocumentFile, options: ImportOptions, tree: Path) -> Run:
    """Import a document in a child process with the code of a checkout."""
    task = Task(memory_bytes=_MEMORY, cpu_s=_CPU_S, options=options, form=file.form)
    command = [sys.executable, "-I", "-c", _START.format(tree=str(tree.resolve()))]
    started = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the child has no pipes")
    child.stdin.write(write_frame(task) + file.raw)
    child.stdin.close()
    printed = child.stdout.read()
    child.stdout.close()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    answer, digest = WorkerAnswer(), hashlib.sha256()
    place = 0
    while place < len(printed):
        length = int.from_bytes(printed[place : place + LENGTH_BYTES], "big")
        place += LENGTH_BYTES
        content = printed[place : place + length]
        message = decode_message(content)
        answer.take(message)
        if not isinstance(message, Closing):
            digest.update(content)
        place += length
    return Run(
        answer=answer,
        digest=digest.hexdigest(),
        cpu_s=used.ru_utime + used.ru_stime,
        wall_s=time.perf_counter() - started,
    )


def _read(path: Path) -> DocumentFile:
    is_archive = path.name.endswith(_ARCHIVES)
    raw = path.read_bytes()
    if path.suffix == ".gz" and not is_archive:
        return DocumentFile(name=path.name.removesuffix(".gz"), raw=gzip.decompress(raw), form=DocumentForm())
    return DocumentFile(name=path.name, raw=raw, form=DocumentForm(is_archive=is_archive))
