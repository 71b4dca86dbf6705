"""Tenants: the isolated customers of one installation."""

import re
from dataclasses import dataclass
from datetime import datetime

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.recorded_fields import Omitted

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""A DNS label (RFC 1123): lower-case letters, digits and inner hyphens, at most 63 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One customer; `slug` is part of its URL, `revision` rises with every change of its catalog."""

    id: TenantId
    slug: str
    name: str
    revision: Omitted[int]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTenant:
    """A tenant that was deleted; its audit trail remains."""

    id: TenantId
    slug: str
    deleted_at: datetime
