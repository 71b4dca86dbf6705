"""Limits of documents that are uploaded before an application names them."""

from datetime import timedelta
from typing import Final

UPLOAD_LIFETIME: Final = timedelta(days=2)
"""Time from an upload, or a dry run that names the document, to its deletion: a plan is valid for one day."""
MAX_UPLOADS: Final = 50
"""Uploaded documents of one tenant: as many as one application may make versions of sources."""
MAX_UPLOADED_BYTES: Final = 256 * 1024 * 1024
"""Bytes of the uploaded documents of one tenant: eight of the largest."""
