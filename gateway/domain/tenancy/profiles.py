"""Named selections of a tenant's primitives."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from gateway.domain.identifiers import ProfileId
from gateway.domain.members.formats import METHOD
from gateway.domain.members.markers import About, Bounds, Check, Form, Length, Option, Shape
from gateway.domain.members.values import Prose, ShortText
from gateway.domain.primitives import Family
from gateway.domain.tenancy.limits import MAX_SUMMARY_THRESHOLD, MIN_SUMMARY_THRESHOLD
from gateway.domain.tenancy.policy import Safety

DEFAULT_PROFILE = "default"
_Texts = Annotated[tuple[ShortText, ...], Length(most=100)]
_Method = Annotated[str, Form(METHOD), Check(str.upper)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule for primitives. All set members must match; within a member, one matching entry is sufficient."""

    names: Annotated[
        _Texts, About("Shell patterns of names; for resources, of URIs."), Option(name="name", metavar="GLOB")
    ] = ()
    sources: Annotated[_Texts, About("Names of sources."), Option(name="source", metavar="SOURCE")] = ()
    tags: Annotated[_Texts, About("Tags of imported operations."), Option(name="tag", metavar="TAG")] = ()
    methods: Annotated[
        tuple[_Method, ...],
        Length(most=100),
        About("HTTP methods of imported operations."),
        Option(name="method", metavar="METHOD"),
    ] = ()
    safety: Annotated[tuple[Safety, ...], Length(most=3), About("Safety levels.")] = ()
    families: Annotated[
        tuple[Family, ...],
        Length(most=4),
        About("Families of primitives: tools, resources, resource templates, prompts."),
        Option(name="family"),
    ] = ()


_Rules = Annotated[tuple[Rule, ...], Length(most=50)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A selection of the tenant's primitives with its own URL: what an include rule matches, and no exclude rule."""

    id: ProfileId
    name: str
    description: Annotated[Prose, About("The description, for people."), Shape.LISTED] = ""
    include: Annotated[
        _Rules,
        About("Items that match any of these rules are included; an empty list includes everything."),
        Shape.KEPT,
    ] = ()
    exclude: Annotated[
        _Rules, About("Items that match any of these rules are excluded."), Option(is_split=True), Shape.KEPT
    ] = ()
    structured_once: Annotated[
        bool,
        About(
            "True sends JSON results only as structured content, with a sentence as text, if the protocol revision"
            " supports it. It is meant for clients that show structured content to their model."
        ),
    ] = False
    selects_fields: Annotated[
        bool,
        About("True gives imported tools the argument `_fields`, with which callers select parts of JSON results."),
    ] = False
    summary_threshold: Annotated[
        int,
        Bounds(least=MIN_SUMMARY_THRESHOLD, most=MAX_SUMMARY_THRESHOLD, or_zero=True),
        Option(metavar="BYTES"),
        About(
            f"Size in bytes ({MIN_SUMMARY_THRESHOLD:,} to {MAX_SUMMARY_THRESHOLD:,}) above which a JSON or text result"
            " is summarised; the tool `read_result` then reads its parts. 0: never."
        ),
    ] = 0
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCounts:
    """The number of primitives of each family that a profile lists."""

    tools: Annotated[int, About("The number of tools."), Shape.LISTED]
    resources: Annotated[int, About("The number of resources.")]
    resource_templates: Annotated[int, About("The number of resource templates.")]
    prompts: Annotated[int, About("The number of prompts.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCosts:
    """The primitives that a profile lists now, and the cost of its list of tools."""

    counts: Annotated[ProfileCounts, About("The number of primitives by family."), Shape.LISTED]
    tools_list_bytes: Annotated[int, About("The size of the tool list in bytes."), Shape.LISTED]
    estimated_tokens: Annotated[int, About("The estimated cost of the tool list in tokens: bytes / 4."), Shape.LISTED]
