"""Request models of the audit trail."""

from typing import Annotated

from pydantic import Field

from gateway.domain.audit import FILTERS, AuditFilter, AuditKind
from gateway.web.models import Absent, PageQuery, QueryModel, Time

_Text = Annotated[str, Field(max_length=200)]


class AuditFilters(QueryModel):
    """Filters of the audit trail; an entry must pass every filter."""

    id: Annotated[_Text | Absent, Field(description=FILTERS["id"])] = None
    kind: Annotated[AuditKind | Absent, Field(description=FILTERS["kind"])] = None
    principal: Annotated[_Text | Absent, Field(description=FILTERS["principal"])] = None
    tool: Annotated[_Text | Absent, Field(description=FILTERS["tool"])] = None
    outcome: Annotated[_Text | Absent, Field(description=FILTERS["outcome"])] = None
    correlation_id: Annotated[_Text | Absent, Field(description=FILTERS["correlation_id"])] = None
    client: Annotated[_Text | Absent, Field(description=FILTERS["client"])] = None
    since: Annotated[Time | Absent, Field(description=FILTERS["since"])] = None
    until: Annotated[Time | Absent, Field(description=FILTERS["until"])] = None

    def as_filter(self) -> AuditFilter:
        """The filter."""
        return AuditFilter(**{name: getattr(self, name) for name in FILTERS})


class ExplainQuery(QueryModel):
    """The entries to explain."""

    of: Annotated[
        _Text | Absent,
        Field(description="The id of an entry (`aud_…`) or a correlation id; default: the last entries."),
    ] = None


class AuditQuery(PageQuery, AuditFilters):
    """Filters of a list of audit entries."""


class TailQuery(QueryModel):
    """Options of a followed audit trail."""

    since: Annotated[Time | Absent, Field(description="Also sends the entries at or after this time.")] = None
    for_s: Annotated[int, Field(ge=0, le=60, description="Seconds after which the response ends.")] = 0


class RetentionQuery(QueryModel):
    """A retention to evaluate; nothing is stored or removed."""

    days: Annotated[
        Annotated[int, Field(ge=1, le=36_500)] | Absent,
        Field(description="Report the entries that this retention would remove."),
    ] = None
