"""Request models of a document or archive that is a complete request body, and of its query."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from gateway.web.models import Absent, BodyModel, QueryModel


class DocumentSent(BodyModel):
    """A document or archive that is a complete request body."""

    archive_types: ClassVar[Sequence[str]] = ("application/zip", "application/x-tar", "application/gzip")
    media_types: ClassVar[Sequence[str]] = (
        "application/json",
        "application/yaml",
        "application/x-yaml",
        "text/yaml",
        "application/vnd.oai.openapi",
        "application/vnd.oai.openapi+json",
        *archive_types,
    )

    content: bytes
    media_type: str


class DocumentQuery(QueryModel):
    """Options of a document that is a complete request body."""

    entry: Annotated[
        str | Absent, Field(min_length=1, max_length=1024, description="The path of the root document in an archive.")
    ] = None
    dry_run: Annotated[bool, Field(description="True returns the report and stores nothing.")] = False
    allow_removals: Annotated[
        bool, Field(description="True permits an update that removes tools; otherwise it is refused (409).")
    ] = False
