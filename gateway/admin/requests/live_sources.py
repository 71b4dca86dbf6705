"""Request models of live sources."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gateway.admin.requests.lists import ByNameOrTime, Enabled
from gateway.admin.requests.models import SourceName
from gateway.admin.requests.primitives import CredentialName, Level
from gateway.catalog.live.overview import LivePrimitiveState
from gateway.domain.live_sources import AttachmentState, LiveKind
from gateway.domain.members.formats import DIGEST, PREFIX
from gateway.domain.primitives import Family
from gateway.domain.sources import Exposure
from gateway.web.models import GIVEN, Absent, BodyModel, ListQuery

_MAX_REMOTE_LENGTH = 2_048
_MAX_PATTERNS = 100
_MAX_NAMES = 1_000


def _check_remote(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must not hold control characters")
    return value


RemoteName = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_check_remote)]
RemotePattern = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_check_remote)]
EffectiveName = Annotated[str, Field(min_length=1, max_length=_MAX_REMOTE_LENGTH), AfterValidator(_check_remote)]

Kind = Annotated[LiveKind, Field(strict=False, description="The kind of the live source; it cannot change.")]
Settings = Annotated[
    dict[str, object],
    Field(
        description="The settings of the kind; `GET /schemas/live_source_mcp` returns the JSON Schema for the kind "
        "`mcp`."
    ),
]
ToolPrefix = Annotated[
    Annotated[str, Field(pattern=PREFIX)] | None,
    Field(description="The prefix of the names of the source's tools and prompts."),
]
Patterns = Annotated[list[RemotePattern], Field(max_length=_MAX_PATTERNS)]
Included = Annotated[
    Patterns, Field(description="Shell patterns of remote names to include; an empty list includes everything.")
]
Excluded = Annotated[Patterns, Field(description="Shell patterns of remote names to exclude.")]
Levels = Annotated[
    dict[RemoteName, Level],
    Field(
        max_length=_MAX_NAMES,
        description="Safety levels by remote tool name; they replace the levels that the gateway assesses.",
    ),
]
_NO_REVIEW = "True: new tools and changed definitions need no review."
AcceptsChanges = Annotated[bool, Field(description=_NO_REVIEW)]
Exposed = Annotated[
    Exposure,
    Field(
        strict=False,
        description="The exposure of the source's tools: as tools, through the query tools, or both; other primitives "
        "are always listed.",
    ),
]
IsEnabled = Annotated[bool, Field(description="False detaches the live source.")]
SentCredential = Annotated[
    CredentialName | None, Field(description="The stored credential to send; only for the kind `mcp`.")
]
CallerCredential = Annotated[
    CredentialName | None,
    Field(
        description="The credential of requests on behalf of a caller, which identifies the caller. Other requests "
        "send `credential`."
    ),
]


class LiveSourceReplace(BodyModel):
    """A live source; absent fields have their default."""

    kind: Kind
    settings: Annotated[Settings, Field(default_factory=dict[str, object])]
    prefix: ToolPrefix = None
    credential: SentCredential = None
    caller_credential: CallerCredential = None
    include: Annotated[Included, Field(default_factory=list[str])]
    exclude: Annotated[Excluded, Field(default_factory=list[str])]
    safety: Annotated[Levels, Field(default_factory=dict[str, Level])]
    accepts_changes: Annotated[
        bool | None, Field(description=f"{_NO_REVIEW} Null: true for the kinds `neovim` and `agent`, false for others.")
    ] = None
    expose: Exposed = Exposure.TOOLS
    enabled: IsEnabled = True


class LiveSourceCreate(LiveSourceReplace):
    """A new live source."""

    name: SourceName


class LiveSourceUpdate(BodyModel):
    """Changes of a live source; absent fields keep their value, and a sent field replaces the whole value."""

    settings: Annotated[Settings | Absent, GIVEN] = None
    prefix: ToolPrefix = None
    credential: SentCredential = None
    caller_credential: CallerCredential = None
    include: Annotated[Included | Absent, GIVEN] = None
    exclude: Annotated[Excluded | Absent, GIVEN] = None
    safety: Annotated[Levels | Absent, GIVEN] = None
    accepts_changes: Annotated[AcceptsChanges | Absent, GIVEN] = None
    expose: Annotated[Exposed | Absent, GIVEN] = None
    enabled: Annotated[IsEnabled | Absent, GIVEN] = None


class LiveSourceAccept(BodyModel):
    """Held definitions to accept."""

    names: Annotated[
        list[EffectiveName] | None,
        Field(
            max_length=_MAX_NAMES,
            description="Names, URIs or URI templates to accept; null accepts all held definitions.",
        ),
    ] = None
    digests: Annotated[
        list[Annotated[str, Field(pattern=DIGEST)]] | None,
        Field(
            max_length=_MAX_NAMES,
            description="Digests of the reviewed definitions; any other definition is refused (409).",
        ),
    ] = None


class LiveSourceListQuery(ListQuery):
    """Search, filters and order of live sources."""

    kind: Annotated[LiveKind | Absent, Field(description="Only live sources of this kind.")] = None
    state: Annotated[AttachmentState | Absent, Field(description="Only live sources in this state.")] = None
    enabled: Enabled = None
    sort: ByNameOrTime = None


class LivePrimitiveListQuery(ListQuery):
    """Search, filters and order of the primitives of a live source."""

    family: Annotated[Family | Absent, Field(description="Only primitives of this family.")] = None
    state: Annotated[LivePrimitiveState | Absent, Field(description="Only primitives in this state.")] = None
    sort: Annotated[
        Literal["place", "-place"] | Absent,
        Field(description="Orders by family and remote name; a `-` in front reverses the order."),
    ] = None
