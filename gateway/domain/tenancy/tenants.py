"""Tenants: the isolated customers of one installation."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from gateway.domain.identifiers import TenantId
from gateway.domain.members.formats import LABEL, PRINTABLE
from gateway.domain.members.markers import About, Form, JsonFormat, Length, Option, Setter, Shape, StoredAs
from gateway.domain.tenancy.recorded_fields import Omitted

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""A DNS label (RFC 1123): lower-case letters, digits and inner hyphens, at most 63 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantStatus:
    """The revision of a tenant, and the place of its MCP endpoint."""

    revision: Annotated[int, About("The revision, which every change of the tenant increases.")]
    mcp_url: Annotated[
        str,
        JsonFormat("uri-reference"),
        About("The URL for MCP clients; a path unless GATEWAY_PUBLIC_URL or an admin port is set."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One customer; `slug` is part of its URL. Every change of its catalog is a version of the tenant."""

    id: TenantId
    slug: Annotated[
        str,
        Form(LABEL),
        About("The name in URLs, a DNS label; it never changes."),
        Setter.CREATION,
        Option(is_argument=True),
    ]
    name: Annotated[
        str,
        Length(least=1, most=200),
        Form(PRINTABLE),
        About("The display name; default: the slug."),
        Shape.LISTED,
    ] = ""
    version: Annotated[int, StoredAs("revision")]
    created_at: datetime
    created_by: Omitted[str | None] = None
    """The operator with the role `creator` that created it: the id of its key, or its subject; None for others."""

    def __post_init__(self) -> None:
        """Use the slug as the default of the name."""
        object.__setattr__(self, "name", self.name or self.slug)

    @property
    def revision(self) -> int:
        """The revision of the catalog, which is the version of the tenant."""
        return self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTenant:
    """A tenant that was deleted, whose audit trail remains."""

    id: Annotated[TenantId, StoredAs("tenant_id"), About("The id; it never changes.")]
    slug: Annotated[str, About("The slug that it had; another tenant may have it now.")]
    deleted_at: Annotated[datetime, About("The time of the deletion.")]
