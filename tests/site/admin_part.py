"""The reference of the admin API as Markdown; `/admin/docs` shows the same blocks as HTML."""

from typing import assert_never

from gateway.admin.openapi.document import describe
from gateway.admin.openapi.reference import (
    Block,
    ReferenceHeading,
    ReferenceList,
    ReferenceParagraph,
    ReferenceTable,
    write_reference,
)
from gateway.admin.routes.index import ENDPOINTS, ROOT


def admin_part() -> str:
    """Text about all operations, then every operation by its path, then every object."""
    return "\n".join(map(to_markdown, write_reference(describe(ENDPOINTS, server=ROOT), ENDPOINTS)))


def to_markdown(block: Block) -> str:
    """One block, with an empty line after it."""
    match block:
        case ReferenceHeading(level=level, text=text):
            return f"{'#' * level} {text}\n"
        case ReferenceParagraph(text=text):
            return f"{text}\n"
        case ReferenceList(items=items):
            return "".join(f"- {item}\n" for item in items)
        case ReferenceTable(head=head, rows=rows):
            lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
            return "".join(f"| {' | '.join(line)} |\n" for line in lines)
        case _:
            assert_never(block)
