"""The kinds that detect changes of resources."""

from gateway.domain.updates.watches import Watch
from gateway.kinds.kind import Kind, Limit, ListFilter

WATCH = Kind(
    of=Watch,
    stem="Watch",
    name="watch",
    plural="watches",
    id_prefix="wat",
    about="a URL that the gateway polls; when its content differs, the resource has changed",
    limit=Limit(most=100, reason="each one is a request at every interval"),
    keyed="uri",
    address="id",
    sorts=("uri", "created_at"),
    example={"uri": "note://1", "url": "https://api.example/notes/1", "interval_s": 300},
    texts=lambda one: (one.uri, one.url),
    filters={
        "uri": ListFilter(type=str, about="Only the watch of this resource.", value=lambda one: one.uri),
        "credential": ListFilter(
            type=str, about="Only watches that send this credential.", value=lambda one: one.credential
        ),
        "failing": ListFilter(
            type=bool,
            about="Only watches whose last poll failed (true) or succeeded (false).",
            value=lambda one: one.status.fault is not None,
        ),
    },
)
