"""The surface of stored rows: names and types of the columns that an older replica reads and writes beside this one."""

from collections.abc import Iterator

from gateway.store.audit.tables import deleted_tenants
from gateway.store.secret_keys.sealed_values import SEALED_TABLES
from gateway.store.sources.tables import source_proposals
from gateway.store.tables import metadata
from tests.surface.canonical import Json
from tests.surface.differences import ADDED, CHANGED, Difference, compare_names

COLUMNS = "columns"
_DECLARED = (metadata, deleted_tenants.metadata, source_proposals.metadata)
"""The metadata, by a table of each module that nothing else here imports."""


def surface() -> Json:
    """Read the surface from the tables."""
    sealed = {f"{one.table.name}.{column}" for one in SEALED_TABLES for column in one.columns}
    return {
        name: {
            column.name: " ".join(
                (
                    str(column.type),
                    *(["key"] if column.primary_key else []),
                    *([] if column.nullable else ["not null"]),
                    *(["sealed"] if f"{name}.{column.name}" in sealed else []),
                )
            )
            for column in table.columns
        }
        for name, table in _DECLARED[0].tables.items()
    }


def compare(before: Json, after: Json) -> Iterator[Difference]:
    """Yield the differences of two forms; "breaking" is meant for a replica of the former release."""
    yield from compare_names("tables", before, after)
    for table in sorted(before.keys() & after.keys()):
        old, new = before[table], after[table]
        for one in compare_names(COLUMNS, (f"{table}.{name}" for name in old), (f"{table}.{name}" for name in new)):
            kind = new[one.name.partition(".")[2]] if one.change is ADDED else ""
            yield Difference(group=COLUMNS, name=one.name, change=one.change, detail=kind, is_breaking=one.is_breaking)
        for name in sorted(old.keys() & new.keys()):
            if old[name] != new[name]:
                detail = f"{old[name]} → {new[name]}"
                yield Difference(group=COLUMNS, name=f"{table}.{name}", change=CHANGED, detail=detail, is_breaking=True)
