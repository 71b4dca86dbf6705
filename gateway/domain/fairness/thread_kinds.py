"""Kinds of work in threads, with their limits; a row for each, and no thread without a row (`run_in_thread`).

Work that computes has few threads, because all threads of a process share one interpreter lock: more would only make
the event loop wait longer. Work that waits for files, name servers or operators' code has more.
"""

from collections.abc import Sequence
from typing import Final

from gateway.domain.fairness.threads import ThreadKind

LARGE_RESULTS: Final = ThreadKind(name="large results", threads=2, queue=1024)
"""Rendering, cutting and redaction of large results. Two, so that a tenant does not wait for another one's result; each
step holds the interpreter lock for less than 50 ms."""

CATALOG_CHANGES: Final = ThreadKind(name="catalog changes", threads=4, queue=256)
"""Checks, comparisons and encodings of changes by the admin API and by imports: up to seconds for a large document."""

SNAPSHOT_LOADS: Final = ThreadKind(name="snapshot loads", threads=4, queue=1024)
"""Composition of snapshots, outlines, validators and handlers at their first use, which calls wait for; apart from
changes, so that imports do not delay calls."""

METERED_SCHEMAS: Final = ThreadKind(name="metered schemas", threads=2, queue=1024)
"""Compilations of schemas whose checks are metered: each once, in up to 100 ms with the interpreter lock."""

LIST_PAGES: Final = ThreadKind(name="list pages", threads=2, queue=1024)
"""Pages of lists that clients receive, rendered once for each protocol revision, in steps of 25 definitions."""

TEMPLATE_MATCHES: Final = ThreadKind(name="template matches", threads=2, queue=256)
"""Matches of many URIs with a tenant's URI templates, up to tens of milliseconds."""

QUERIES: Final = ThreadKind(name="query threads", threads=4, queue=1024)
"""Answers of the query tools, which search outlines: milliseconds each."""

HANDLERS: Final = ThreadKind(name="handler threads", threads=64, queue=1024)
"""Plain functions of operators' code, which mostly wait for something."""

NAME_LOOKUPS: Final = ThreadKind(name="name lookups", threads=32, queue=1024, timeout_s=5.0)
"""Names of upstreams; a name server that is silent holds a thread for tens of seconds."""

PROVIDER_CHECKS: Final = ThreadKind(name="checks of providers", threads=2, queue=400, timeout_s=60.0)
"""Checks of the definitions that programs offer, which may take seconds."""

SECRET_FILES: Final = ThreadKind(name="secret files", threads=8, queue=256)
"""Reads of secrets in files, which hang with their file system."""

AUDIT_FILES: Final = ThreadKind(name="audit files", threads=8, queue=256)
"""Appends to files of audit sinks, and to the file of audit heads, which hang with their file system."""

OWN_PROGRAMS: Final = ThreadKind(name="own programs", threads=16, queue=64)
"""Starts and ends of embedded servers, and preparations of the command line. No tenant causes them."""

THREAD_KINDS: Final[Sequence[ThreadKind]] = (
    LARGE_RESULTS,
    CATALOG_CHANGES,
    SNAPSHOT_LOADS,
    METERED_SCHEMAS,
    LIST_PAGES,
    TEMPLATE_MATCHES,
    QUERIES,
    HANDLERS,
    NAME_LOOKUPS,
    PROVIDER_CHECKS,
    SECRET_FILES,
    AUDIT_FILES,
    OWN_PROGRAMS,
)
"""All kinds, for metrics."""
