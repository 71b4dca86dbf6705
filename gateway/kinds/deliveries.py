"""The kinds that deliver what happens to a tenant's other systems."""

from gateway.domain.audit import TrailSink
from gateway.domain.members.formats import LABEL
from gateway.kinds.kind import Kind, Limit, ListFilter

SINK = Kind(
    of=TrailSink,
    stem="Sink",
    name="audit_sink",
    plural="audit-sinks",
    id_prefix="snk",
    about="an external system that receives the tenant's audit trail, at least once",
    limit=Limit(most=10, reason="each one reads every entry of the trail"),
    form=LABEL,
    name_about="Unique in the tenant; a DNS label.",
    example={"name": "siem", "kind": "https", "target": "https://siem.example/entries"},
    texts=lambda one: (one.name, one.target),
    filters={
        "failing": ListFilter(
            type=bool,
            about="Only sinks whose last delivery failed (true) or succeeded (false).",
            value=lambda one: one.status.fault is not None,
        )
    },
)
