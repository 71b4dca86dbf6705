"""Request models of primitives, profiles and credentials.

The catalog validates the content of definitions and handlers.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gateway.admin.fields import DESCRIPTION, EXCLUDE, INCLUDE, SELECTS_FIELDS, STRUCTURED_ONCE, SUMMARY_THRESHOLD
from gateway.admin.openapi.formats import GROUP, ISSUER_SCOPE, LABEL, METHOD, NAME, PRINTABLE, SCOPE
from gateway.admin.requests.models import (
    GIVEN,
    Absent,
    BodyModel,
    Label,
    QueryModel,
    SecretText,
    UserName,
    partial_model,
)
from gateway.domain.credentials import CredentialKind, CredentialLocation
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import MAX_SUMMARY_THRESHOLD, MIN_SUMMARY_THRESHOLD
from gateway.domain.tenancy.secret_references import SecretReference, SecretStoreKind

_MAX_RULES = 50
_MAX_IN_RULE = 100
_MAX_URI_LENGTH = 2048


def check_printable(value: str) -> str:
    """Return the text if it has no control characters."""
    if not value.isprintable():
        raise ValueError("must not hold control characters")
    return value


def _check_lines(value: str) -> str:
    if not value.replace("\n", "").isprintable():
        raise ValueError("must not hold control characters but line feeds")
    return value


Definition = Annotated[
    dict[str, object],
    Field(description="The MCP object; `GET /schemas` lists its JSON Schema."),
]
HandlerObject = Annotated[
    dict[str, object],
    Field(description="The handler, by `kind`; `GET /schemas` lists the JSON Schema of each kind."),
]
Level = Annotated[Safety, Field(strict=False)]
Uri = Annotated[str, Field(min_length=1, max_length=_MAX_URI_LENGTH), AfterValidator(check_printable)]
Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_printable)]
Texts = Annotated[list[Text], Field(max_length=_MAX_IN_RULE)]
ProfileName = Annotated[str, Field(pattern=LABEL, description="A DNS label; it is a segment of the profile's URL.")]
CredentialName = Annotated[str, Field(pattern=NAME, description="Unique in the tenant.")]
Prose = Annotated[str, Field(max_length=2000), AfterValidator(_check_lines)]


GroupName = Annotated[
    str,
    Field(max_length=300, pattern=GROUP, description="A group of an issuer: `ISSUER:GROUP`."),
    AfterValidator(check_printable),
]
ScopeName = Annotated[
    str, Field(max_length=300, pattern=ISSUER_SCOPE, description="A scope of an issuer: `ISSUER:SCOPE`.")
]


class PrimitiveSent(BodyModel):
    """A primitive of the tenant's own, with its handler."""

    definition: Definition
    handler: HandlerObject
    safety: Annotated[
        Level | None, Field(description="The declared safety level; it replaces the level that the gateway assesses.")
    ] = None
    enabled: Annotated[bool, Field(description="False: no principal can list or use the primitive.")] = True


class PrimitiveUpdate(BodyModel):
    """Changes of a primitive; absent fields keep their value."""

    definition: Annotated[Definition | Absent, GIVEN] = None
    handler: Annotated[HandlerObject | Absent, GIVEN] = None
    safety: Annotated[
        Level | None, Field(description="The declared safety level; null restores the level that the gateway assesses.")
    ] = None
    enabled: Annotated[
        bool | Absent, GIVEN, Field(description="False: no principal can list or use the primitive.")
    ] = None


class UriQuery(QueryModel):
    """The address of one item."""

    uri: Annotated[Uri, Field(description="The URI or URI template of the item.")]


class ToolTry(BodyModel):
    """A tool call to try."""

    arguments: Annotated[
        dict[str, object],
        Field(default_factory=dict[str, object], description="The arguments, in the form that a client sends."),
    ]


class ExplainAs(BodyModel):
    """The simulated client of an explained call."""

    profile: Annotated[
        Text | None, Field(description="The profile; null means the profile of the key, or else `default`.")
    ] = None
    key: Annotated[Text | None, Field(description="The id of the calling key; null means the key of this request.")] = (
        None
    )
    subject: Annotated[
        Text | None, Field(description="The subject of a calling person, such as `corp:ada`, in place of a key.")
    ] = None
    groups: Annotated[
        list[GroupName] | None,
        Field(max_length=1000, description="The groups of the person; null means unknown."),
    ] = None
    scopes: Annotated[
        list[ScopeName] | None,
        Field(max_length=1000, description="The scopes of the person's access token; null means none, as in a task."),
    ] = None


class ToolExplain(BodyModel):
    """A tool call to explain without making it."""

    arguments: Annotated[
        dict[str, object],
        Field(default_factory=dict[str, object], description="The arguments, in the form that a client sends."),
    ]
    client: Annotated[
        ExplainAs, Field(alias="as", default_factory=ExplainAs, description="The client of the simulated call.")
    ]


class PromptTry(BodyModel):
    """A prompt to try."""

    arguments: Annotated[
        dict[Text, str],
        Field(
            default_factory=dict[str, str],
            max_length=200,
            description="The arguments, in the form that a client sends.",
        ),
    ]


class ResourceChanged(BodyModel):
    """A resource whose contents have changed."""

    uri: Annotated[Uri, Field(description="The URI of the resource.")]


class RuleSent(BodyModel):
    """A rule for primitives. All sent members must match; within a member, one matching entry is sufficient."""

    names: Annotated[
        Texts, Field(default_factory=list[str], description="Shell patterns of names; for resources, of URIs.")
    ]
    sources: Annotated[Texts, Field(default_factory=list[str], description="Names of sources.")]
    tags: Annotated[Texts, Field(default_factory=list[str], description="Tags of imported operations.")]
    methods: Annotated[
        list[Annotated[str, Field(pattern=METHOD)]],
        Field(default_factory=list[str], max_length=100, description="HTTP methods of imported operations."),
    ]
    safety: Annotated[list[Level], Field(default_factory=list[Safety], max_length=3, description="Safety levels.")]
    families: Annotated[
        list[Annotated[Family, Field(strict=False)]],
        Field(
            default_factory=list[Family],
            max_length=4,
            description="Families of primitives: tools, resources, resource templates, prompts.",
        ),
    ]


Rules = Annotated[list[RuleSent], Field(max_length=_MAX_RULES)]


SummaryThreshold = Literal[0] | Annotated[int, Field(ge=MIN_SUMMARY_THRESHOLD, le=MAX_SUMMARY_THRESHOLD)]


class ProfileReplace(BodyModel):
    """The rules of a profile. A primitive must match an include rule, if there is any, and no exclude rule."""

    description: Annotated[Prose, DESCRIPTION] = ""
    include: Annotated[Rules, Field(default_factory=list[RuleSent]), INCLUDE]
    exclude: Annotated[Rules, Field(default_factory=list[RuleSent]), EXCLUDE]
    structured_once: Annotated[bool, STRUCTURED_ONCE] = False
    selects_fields: Annotated[bool, SELECTS_FIELDS] = False
    summary_threshold: Annotated[SummaryThreshold, SUMMARY_THRESHOLD] = 0


class ProfileCreate(ProfileReplace):
    """A new profile."""

    name: ProfileName


class ProfileUpdate(BodyModel):
    """Changes of a profile; absent fields keep their value."""

    description: Annotated[Prose | Absent, GIVEN, DESCRIPTION] = None
    include: Annotated[Rules | Absent, GIVEN, INCLUDE] = None
    exclude: Annotated[Rules | Absent, GIVEN, EXCLUDE] = None
    structured_once: Annotated[bool | Absent, GIVEN, STRUCTURED_ONCE] = None
    selects_fields: Annotated[bool | Absent, GIVEN, SELECTS_FIELDS] = None
    summary_threshold: Annotated[SummaryThreshold | Absent, GIVEN, SUMMARY_THRESHOLD] = None


class SecretReferenceSent(BodyModel):
    """The location of a secret in an external store."""

    store: Annotated[
        SecretStoreKind,
        Field(strict=False, description="`file`, `vault`, or `variable`, to which only the operator may refer."),
    ]
    path: Annotated[
        str, Field(min_length=1, max_length=512, description="The path within the tenant's part of the store.")
    ]
    field: Annotated[str | None, Field(max_length=512, description="The field of a secret in Vault.")] = None


def read_reference(sent: SecretReferenceSent | None) -> SecretReference | None:
    """Return the reference of a body."""
    return None if sent is None else SecretReference(store=sent.store, path=sent.path, field=sent.field)


Endpoint = Annotated[str, Field(min_length=1, max_length=_MAX_URI_LENGTH, pattern=PRINTABLE)]


class CredentialReplace(BodyModel):
    """A complete credential. It replaces every part of the previous one, whose secret is never shown."""

    kind: Annotated[
        CredentialKind,
        Field(
            strict=False,
            description="The identity that the upstream sees. `shared`: one secret for all callers. `exchange`: a "
            "token that the issuer returns in exchange for the caller's access token. `assertion`: a JWT of the "
            "gateway that names the caller. `user`: a token of the account that each caller has connected.",
        ),
    ] = CredentialKind.SHARED
    place: Annotated[
        CredentialLocation,
        Field(strict=False, description="`basic` takes `username` and `password`, the others `value`."),
    ]
    audience: Annotated[
        Label | None,
        Field(description="The audience of the token of an `exchange` or `assertion`; required for an `assertion`."),
    ] = None
    issuer: Annotated[Label | None, Field(description="The issuer that exchanges tokens.")] = None
    client_id: Annotated[
        Label | None,
        Field(description="The client id, for an `exchange` or accounts of users; `value` is the client secret."),
    ] = None
    scopes: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200, pattern=SCOPE)]],
        Field(max_length=50, description="The scopes that an `exchange`, or the connection of an account, requests."),
    ] = Field(default_factory=list[str])
    server: Annotated[
        Endpoint | None,
        Field(
            description="For accounts of users: the issuer identifier of the upstream's authorization server, whose "
            "metadata has the endpoints (RFC 8414)."
        ),
    ] = None
    authorization_url: Annotated[
        Endpoint | None, Field(description="The authorization endpoint, for a server without metadata.")
    ] = None
    token_url: Annotated[Endpoint | None, Field(description="The token endpoint, for a server without metadata.")] = (
        None
    )
    revocation_url: Annotated[
        Endpoint | None, Field(description="The revocation endpoint (RFC 7009), for a server without metadata.")
    ] = None
    parameters: Annotated[
        dict[
            Annotated[str, Field(min_length=1, max_length=64, pattern=NAME)],
            Annotated[str, Field(max_length=200, pattern=PRINTABLE)],
        ],
        Field(max_length=10, description="Further parameters of authorization requests, such as `access_type`."),
    ] = Field(default_factory=dict[str, str])
    field: Annotated[
        Label | None, Field(description="The name of the header or query parameter, for the locations that need one.")
    ] = None
    value: Annotated[SecretText | None, Field(description="The secret; not for `basic`.")] = None
    username: Annotated[UserName | None, Field(description="The user name, for HTTP Basic.")] = None
    password: Annotated[SecretText | None, Field(description="The password, for HTTP Basic.")] = None
    reference: Annotated[
        SecretReferenceSent | None,
        Field(description="The location of the secret in an external store, instead of `value` or `password`."),
    ] = None
    origins: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=300)]],
        Field(
            min_length=1,
            max_length=50,
            description="The only origins that receive the credential, such as https://api.example.com.",
        ),
    ]


CREDENTIAL_UPDATE = partial_model(
    CredentialReplace,
    "CredentialUpdate",
    "Changes of a credential; absent fields keep their value. Without a new secret, the receivers cannot change.",
)


class CredentialCreate(CredentialReplace):
    """A new credential, which handlers refer to by name."""

    name: CredentialName
