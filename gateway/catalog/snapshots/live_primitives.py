"""Primitives of live sources in a snapshot: present, accepted, and with a free name.

A name belongs to the oldest live source with an accepted primitive of that name, even while that source is detached. So
calls to a name never move to another source when a program stops.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gateway.definitions.live.page_digests import digest_in
from gateway.definitions.live.page_uris import is_for_pages, is_page
from gateway.definitions.uri.shapes import shape_of
from gateway.definitions.uri.templates import UriTemplate
from gateway.domain.identifiers import LiveSourceId, PrimitiveId
from gateway.domain.json_access import encode_exact
from gateway.domain.json_text import decode_object
from gateway.domain.live_sources import LivePrimitive, LiveSource, RememberedPrimitive
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tools import PrimitiveOrigin
from gateway.errors import ResourceValidationError

Place = tuple[Family, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOffer:
    """The enabled live sources of a tenant, oldest first, and their remembered primitives."""

    sources: Sequence[LiveSource] = ()
    found: Mapping[LiveSourceId, Sequence[RememberedPrimitive]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenLivePrimitive:
    """A primitive of a live source whose name is taken; `owner` is another live source, or empty for any other
    owner.
    """

    source: LiveSourceId
    family: Family
    name: str
    remote: str
    owner: str = ""


NO_OFFER = LiveOffer(found={})


def split_hidden_live(
    offer: LiveOffer, taken: Iterable[Place]
) -> tuple[Sequence[Primitive], Sequence[HiddenLivePrimitive]]:
    """Return the visible primitives, and those that other primitives hide; `taken` contains the names of other
    primitives.
    """
    if not any(offer.found.values()):
        return [], []
    taken_names = list(taken)
    owners = {_key(family, name): "" for family, name in taken_names}
    templates = _OwnTemplates(name for family, name in taken_names if family is Family.TEMPLATE)
    visible_primitives: list[Primitive] = []
    hidden: list[HiddenLivePrimitive] = []
    for source in offer.sources:
        mine: set[Place] = set()
        for one in offer.found.get(source.id, ()):
            primitive = one.primitive
            if one.accepted_digest is None:
                continue
            key = _key(primitive.family, primitive.name)
            is_matched = primitive.family is Family.RESOURCE and templates.match(primitive.name)
            if key not in owners and not is_matched and key not in mine:  # guard: live-name-taken
                mine.add(key)
                visible_primitives += [_primitive(source, primitive)] if one.is_offered else []
            elif one.is_offered:
                hidden.append(
                    HiddenLivePrimitive(
                        source=source.id,
                        family=primitive.family,
                        name=primitive.name,
                        remote=primitive.remote,
                        owner=owners.get(key, source.name if key in mine else ""),
                    )
                )
        owners |= dict.fromkeys(mine, source.name)
    return visible_primitives, hidden


def _key(family: Family, name: str) -> Place:
    """The name that must be unique; templates with the same shape match the same URIs."""
    return family, shape_of(name) if family is Family.TEMPLATE else name


class _OwnTemplates:
    """URI templates of the tenant, found by their literal beginning."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_prefix: dict[str, list[UriTemplate]] = {}
        for name in names:
            try:
                self._by_prefix.setdefault(name.partition("{")[0], []).append(UriTemplate.parse(name))
            except ResourceValidationError:  # an older version accepted it
                continue

    def match(self, uri: str) -> bool:
        """True if one of the templates matches, so that its handler serves reads of this URI."""
        prefixes = (uri[:end] for end in range(len(uri) + 1)) if self._by_prefix else ()
        return any(one.match(uri) is not None for prefix in prefixes for one in self._by_prefix.get(prefix, ()))


def schemes_of(offer: LiveOffer) -> Mapping[str, frozenset[str]]:
    """Return the schemes of the resources and templates that each source lists, by the source's name."""
    families = {Family.RESOURCE, Family.TEMPLATE}
    return {
        source.name: frozenset(
            one.primitive.name.partition(":")[0].lower()
            for one in offer.found.get(source.id, ())
            if one.is_offered and one.primitive.family in families
        )
        for source in offer.sources
    }


def page_tools_of(offer: LiveOffer) -> Mapping[str, Sequence[str]]:
    """Return the names of tools by their names at sources that have pages (MCP Apps).

    A page calls the tools of its server by the names that they have there. Tools that are not for pages are left out.
    """
    found: dict[str, list[str]] = {}
    for source in offer.sources:
        offered = [one.primitive for one in offer.found.get(source.id, ()) if one.is_offered]
        if not any(one.family is Family.RESOURCE and is_page(one.name) for one in offered):
            continue
        for one in offered:
            if one.family is Family.TOOL and is_for_pages(decode_object(one.definition)):  # guard: live-page-visibility
                found.setdefault(one.remote, []).append(one.name)
    return found


def is_selected(source: LiveSource, remote: str) -> bool:
    """True if the patterns of the source include a remote name."""
    is_included = not source.include or any(fnmatchcase(remote, pattern) for pattern in source.include)
    return is_included and not any(fnmatchcase(remote, pattern) for pattern in source.exclude)  # guard: linked-selected


def unlisted_resource(source: LiveSource, uri: str) -> Primitive:
    """The primitive of a resource that the source does not list."""
    return Primitive(
        id=_id_of(source, Family.RESOURCE, uri),
        family=Family.RESOURCE,
        name=uri,
        definition=b"{}",
        handler=_handler_of(source, uri),
        origin=PrimitiveOrigin.LIVE,
        source_name=source.name,
    )


def _id_of(source: LiveSource, family: Family, remote: str) -> PrimitiveId:
    mark = hashlib.blake2b(f"{source.id}\0{family}\0{remote}".encode(), digest_size=10).hexdigest()
    return PrimitiveId(f"lvp_{mark}")


def _handler_of(source: LiveSource, remote: str, page: str = "") -> bytes:
    handler = {"kind": "live", "source": source.id, "remote": remote}
    return encode_exact(handler | {"page": page} if page else handler)


def _page_of(source: LiveSource, found: LivePrimitive) -> str:
    """The digest that the contents of a page have to have; empty if they may change."""
    if source.accepts_changes or not is_page(found.name):
        return ""
    return digest_in(decode_object(found.definition))


def _primitive(source: LiveSource, found: LivePrimitive) -> Primitive:
    declared = source.safety.get(found.remote) if found.family is Family.TOOL else None
    return Primitive(
        id=_id_of(source, found.family, found.remote),
        family=found.family,
        name=found.name,
        definition=found.definition,
        handler=_handler_of(source, found.remote, _page_of(source, found)),
        safety=declared or found.safety,
        safety_reasons=found.safety_reasons,
        override=declared,
        assessed=found.safety,
        origin=PrimitiveOrigin.LIVE,
        source_name=source.name,
    )
