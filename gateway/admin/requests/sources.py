"""Request models of sources, and of the versions of their documents."""

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from gateway.admin.requests.models import CutOut, SecretText, UserName
from gateway.domain.members.formats import NAME
from gateway.kinds.sources import SOURCE
from gateway.web.kinds.annotations import make_model
from gateway.web.kinds.models import models_of
from gateway.web.models import BodyModel

ONE_ORIGIN = "needs exactly one of document, url and archive"
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


class DocumentOptions(BodyModel):
    """A document or archive, and whether the request is a dry run."""

    document: Annotated[
        dict[str, object] | str | CutOut | None,
        Field(description="The OpenAPI document: an object, or its JSON or YAML as text."),
    ] = None
    archive: Annotated[ArchiveObject | None, Field(description="The archive with the files of the document.")] = None
    dry_run: Annotated[bool, Field(description="True returns the report and stores nothing.")] = False


class SourceImport(DocumentOptions):
    """A document, and what the import of a source takes beside its options."""

    credentials: Annotated[
        Credentials | None,
        Field(description="Secrets by name of the document's security scheme; they are encrypted and never shown."),
    ] = None
    allow_removals: Annotated[
        bool,
        Field(description="True permits an update that removes tools; otherwise it is refused (409)."),
    ] = False

    @property
    def origins(self) -> int:
        """The number of documents, archives and URLs in the request."""
        return sum(getattr(self, name, None) is not None for name in ("document", "url", "archive"))

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if self.origins > 1:
            raise ValueError("needs at most one of document, url and archive")
        return self


class SourceOrigin(SourceImport):
    """A document that is imported for the first time."""

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if self.origins != 1:
            raise ValueError(ONE_ORIGIN)
        return self


if TYPE_CHECKING:  # a derived class is no type for a checker

    class SourceReplace(SourceImport):
        """A source; absent fields have their default."""

    class SourceCreate(SourceImport):
        """A document to import."""

        name: str
        prefix: str | None

    class SourceUpdate(SourceImport):
        """Changes of a source."""

else:
    SourceReplace = make_model(
        "SourceReplace",
        (SourceImport, models_of(SOURCE).whole),
        "The options of a source, and its document; absent options have their default. Without a document and URL, an "
        "existing source keeps its document. Operations that remain keep their tool names; stored credentials are kept "
        "if `credentials` is absent.",
        {},
    )
    SourceCreate = make_model("SourceCreate", (SourceOrigin, models_of(SOURCE).create), "A document to import.", {})
    SourceUpdate = make_model(
        "SourceUpdate",
        (SourceImport, models_of(SOURCE).change),
        "Changes of a source; absent fields keep their value, and without a new document the stored one is kept. "
        "Operations that remain keep their tool names; only a new prefix changes them.",
        {},
    )


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
