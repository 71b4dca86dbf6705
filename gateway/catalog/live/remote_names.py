"""Names of a live source's primitives in the tenant's catalog."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.definitions.live.page_uris import shown_uri
from gateway.domain.live_sources import DiscoveredPrimitive, LiveSource, RememberedPrimitive
from gateway.domain.primitives import Family
from gateway.openapi.operation.names import grants, name_tools

Place = tuple[Family, str]
"""The family of a primitive, and its name at the source."""


def place_of(one: DiscoveredPrimitive) -> Place:
    """The place of a primitive at its source."""
    return one.family, one.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _RemoteName:
    """A name at a live source, in the form that `name_tools` accepts."""

    identity: str
    method: str

    @property
    def path(self) -> str:
        return self.identity

    @property
    def operation_id(self) -> str:
        return self.identity


def assign_names(
    source: LiveSource, places: Sequence[Place], known: Sequence[RememberedPrimitive]
) -> Mapping[Place, str]:
    """Names of tools and prompts, by the same rules as for imported tools; resources and templates keep their URIs,
    except pages.
    """
    names_by_place = {
        (family, remote): shown_uri(source.name, remote) if family is Family.RESOURCE else remote
        for family, remote in places
    }
    for family in (Family.TOOL, Family.PROMPT):
        remotes = [remote for of, remote in places if of is family]
        known_names = {
            one.primitive.remote: one.primitive.name
            for one in known
            if one.primitive.family is family
            and grants(one.primitive.name, one.primitive.remote, one.primitive.remote, prefix=source.prefix)
        }
        shared = {name for name, uses in Counter(known_names.values()).items() if uses > 1}
        known_names = {remote: name for remote, name in known_names.items() if name not in shared}
        assigned = name_tools(
            [_RemoteName(identity=remote, method=family.value) for remote in remotes],
            prefix=source.prefix,
            known=known_names,
        )
        names_by_place |= {(family, remote): assigned[remote].text for remote in remotes}
    return names_by_place
