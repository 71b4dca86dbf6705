"""Responses about documents that are uploaded by digest."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, RootModel

from gateway.web.models import ResponseModel


class DocumentUploaded(ResponseModel):
    """A document that an application of manifests can name."""

    digest: Annotated[str, Field(description="SHA-256 of the document, in hexadecimal.")]
    size: Annotated[int, Field(description="The number of bytes.")]
    expires_at: Annotated[datetime, Field(description="The time at which it is deleted, unless a dry run names it.")]


class DocumentBytes(RootModel[Any]):
    """The bytes of a document or an archive."""
