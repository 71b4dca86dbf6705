"""Request models of sources, and of the versions of their documents."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gateway.admin.fields import REFRESH_INTERVAL, REFRESH_POLICY
from gateway.admin.requests.models import CutOut, Pattern, Prefix, SecretText, SourceName, Url, UserName
from gateway.domain.http.headers import is_fillable, is_token
from gateway.domain.members.formats import METHOD, NAME
from gateway.domain.sources import Exposure
from gateway.domain.updates.source_versions import RefreshPolicy
from gateway.web.models import BodyModel

_MAX_RULES = 100
_MAX_INTERVAL_S = 30 * 86_400
_MAX_PARAMETERS = 20
SchemeName = Annotated[str, Field(min_length=1, max_length=200)]
TokenParameter = Annotated[str, Field(min_length=1, max_length=1000)]
TokenParameterName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")]
_GRANT_PARAMETERS = frozenset(("grant_type", "client_id", "client_secret", "scope"))
"""Parameters of a token request that the grant or the document sets."""


class SecretObject(BodyModel):
    """A credential with a single value: an API key or a bearer token."""

    value: Annotated[SecretText, Field(description="The secret.")]


class LoginObject(BodyModel):
    """A credential with user name and password, for HTTP Basic, or with client id and secret, for client credentials.

    The other members are parameters of the token request of client credentials.
    """

    username: Annotated[UserName, Field(description="The user name, for HTTP Basic, or the client id.")]
    password: Annotated[SecretText, Field(description="The password, for HTTP Basic, or the client secret.")]
    audience: Annotated[TokenParameter | None, Field(description="The API that the token is for.")] = None
    resource: Annotated[TokenParameter | None, Field(description="The resource that the token is for (RFC 8707).")] = (
        None
    )
    parameters: Annotated[
        dict[TokenParameterName, TokenParameter],
        Field(default_factory=dict[str, str], max_length=10, description="Further parameters of the token request."),
    ]

    @model_validator(mode="after")
    def _check_parameters(self) -> Self:
        if taken := sorted(_GRANT_PARAMETERS.intersection(self.parameters)):  # guard: grant-parameters
            raise ValueError(f"the parameter {taken[0]!r} is set by the gateway")
        return self

    def token_parameters(self) -> tuple[tuple[str, str], ...]:
        """The parameters of the token request besides those of the grant."""
        named = {"audience": self.audience, "resource": self.resource}
        return tuple(({name: value for name, value in named.items() if value is not None} | self.parameters).items())


class ReferenceObject(BodyModel):
    """A reference to a stored credential of the tenant, which may authenticate requests as the caller."""

    credential: Annotated[str, Field(pattern=NAME, description="The name of the credential.")]


LoginPair = Annotated[
    list[SecretText], Field(min_length=2, max_length=2, description="User name and password, for HTTP Basic.")
]
Credentials = Annotated[
    dict[SchemeName, SecretText | LoginPair | SecretObject | LoginObject | ReferenceObject],
    Field(
        max_length=50,
        description="Credentials by name of the document's security scheme; they are encrypted and never shown.",
    ),
]


class FilledParameterSent(BodyModel):
    """A parameter that a credential of the source fills in every request; its tools have no argument for it."""

    location: Annotated[
        Literal["header", "query", "cookie", "path"],
        Field(
            description="The location of the parameter; `path` fills the placeholder of this name where a path has it."
        ),
    ]
    name: Annotated[
        str,
        Field(
            min_length=1, max_length=200, description="The name of the header, query parameter, cookie or placeholder."
        ),
    ]
    credential: Annotated[SchemeName, Field(description="The name of the credential in `credentials`.")]

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        if self.location in {"header", "cookie"} and not is_token(self.name):
            raise ValueError(f"{self.name!r} is not a valid name of a {self.location}")
        if self.location == "header" and not is_fillable(self.name):  # guard: filled-headers
            raise ValueError(f"the header {self.name!r} is set by the gateway only")
        return self


class ArchiveObject(BodyModel):
    """A document of several files that refer to each other by relative paths, as zip, tar or tar.gz."""

    base64: Annotated[
        str | CutOut,
        Field(min_length=1, json_schema_extra={"contentEncoding": "base64"}, description="The bytes of the archive."),
    ]
    entry: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=1024,
            description="The path of the root document; default: the OpenAPI document nearest to the root of the "
            "archive.",
        ),
    ] = None


class OperationRuleSent(BodyModel):
    """A rule for operations. All sent members must match; within a member, one matching entry is sufficient."""

    operation_ids: Annotated[
        list[Pattern],
        Field(default_factory=list[str], max_length=_MAX_RULES, description="Shell patterns of operationIds."),
    ]
    methods: Annotated[
        list[Annotated[str, Field(pattern=METHOD)]],
        Field(default_factory=list[str], max_length=_MAX_RULES, description="HTTP methods, in any case."),
    ]
    paths: Annotated[
        list[Pattern],
        Field(
            default_factory=list[str],
            max_length=_MAX_RULES,
            description="Shell patterns of paths as written in the document; `*` also matches slashes.",
        ),
    ]
    tags: Annotated[
        list[Pattern],
        Field(default_factory=list[str], max_length=_MAX_RULES, description="Tags, compared exactly."),
    ]


OperationRules = Annotated[list[OperationRuleSent], Field(max_length=_MAX_RULES)]


class DocumentOptions(BodyModel):
    """A document or archive, and whether the request is a dry run."""

    document: Annotated[
        dict[str, object] | str | CutOut | None,
        Field(description="The OpenAPI document: an object, or its JSON or YAML as text."),
    ] = None
    archive: Annotated[ArchiveObject | None, Field(description="The archive with the files of the document.")] = None
    dry_run: Annotated[bool, Field(description="True returns the report and stores nothing.")] = False


class SourceOptions(DocumentOptions):
    """A document and the options of its import."""

    url: Annotated[Url | None, Field(description="The URL of the document.")] = None
    base_url: Annotated[
        Url | None, Field(description="The base URL of requests; it replaces the servers of the document.")
    ] = None
    prefix: Annotated[
        Prefix | None, Field(description="The prefix of every tool name of the source; null means none.")
    ] = None
    expose: Annotated[
        Exposure,
        Field(strict=False, description="The exposure of operations: as tools, through the query tools, or both."),
    ] = Exposure.TOOLS
    include: Annotated[
        OperationRules,
        Field(
            default_factory=list[OperationRuleSent],
            description="Operations that match any of these rules are included; without rules, the extensions of the "
            "document decide.",
        ),
    ]
    exclude: Annotated[
        OperationRules,
        Field(
            default_factory=list[OperationRuleSent],
            description="Operations that match any of these rules are excluded.",
        ),
    ]
    output_schemas: Annotated[
        bool, Field(description="True lists output schemas; a result that does not match its schema becomes an error.")
    ] = False
    credentials: Annotated[
        Credentials | None,
        Field(description="Secrets by name of the document's security scheme; they are encrypted and never shown."),
    ] = None
    parameters: Annotated[
        list[FilledParameterSent],
        Field(
            default_factory=list[FilledParameterSent],
            max_length=_MAX_PARAMETERS,
            description="Parameters that credentials fill in every request, whatever the document declares.",
        ),
    ]
    timeout_s: Annotated[
        float | None,
        Field(
            ge=0.1,
            le=3600,
            description="Time limit of its calls in seconds, within the operator's maximum; null means the usual ones.",
        ),
    ] = None
    refresh_policy: Annotated[RefreshPolicy, Field(strict=False), REFRESH_POLICY] = RefreshPolicy.MANUAL
    refresh_interval_s: Annotated[int | None, Field(ge=1, le=_MAX_INTERVAL_S), REFRESH_INTERVAL] = None
    allow_removals: Annotated[
        bool,
        Field(description="True permits an update that removes tools; otherwise it is refused (409)."),
    ] = False


def _count_origins(sent: SourceOptions) -> int:
    return sum(origin is not None for origin in (sent.document, sent.url, sent.archive))


class SourceReplace(SourceOptions):
    """A new document for a source; operations that remain keep their tool names.

    All options are replaced; stored credentials are kept when `credentials` is absent.
    """

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if _count_origins(self) != 1:
            raise ValueError("needs exactly one of document, url and archive")
        return self


class SourceCreate(SourceReplace):
    """A document to import."""

    name: SourceName


class SourceUpdate(SourceOptions):
    """Changes of a source; absent fields keep their value, and without a new document the stored one is kept.

    Operations that remain keep their tool names; only a new prefix changes them.
    """

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if _count_origins(self) > 1:
            raise ValueError("needs at most one of document, url and archive")
        return self


class ProposalSent(DocumentOptions):
    """A document to propose; clients receive its tools when the proposal is activated."""

    allow_removals: Annotated[
        bool, Field(description="True permits a document with less than half of the tools; else it is refused (409).")
    ] = False

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if (self.document is None) == (self.archive is None):
            raise ValueError("needs exactly one of document and archive")
        return self


class SourceRefresh(BodyModel):
    """A manual refresh of a source."""

    is_optional = True

    allow_removals: Annotated[
        bool, Field(description="True permits a document with less than half of the tools; else it is refused (409).")
    ] = False


class VersionActivate(BodyModel):
    """The activation of a proposal, or the rollback to a stored version."""

    is_optional = True

    credentials: Annotated[
        Credentials | None,
        Field(
            description="Secrets for new hosts, by name of the security scheme; if absent, stored credentials are kept."
        ),
    ] = None
    dry_run: Annotated[bool, Field(description="True returns the report and stores nothing.")] = False
