"""Request models of primitives, profiles and credentials.

The catalog validates the content of definitions and handlers.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from gateway.admin.requests.models import Label, SecretText, UserName
from gateway.domain.credentials import CredentialKind, CredentialLocation
from gateway.domain.members.formats import GROUP, ISSUER_SCOPE, NAME, PRINTABLE, SCOPE
from gateway.domain.members.values import check_lines, check_printable
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.secret_references import SecretReference, SecretStoreKind
from gateway.web.kinds.rules import RuleSent
from gateway.web.models import BodyModel, QueryModel, partial_model

_MAX_RULES = 50
_MAX_IN_RULE = 100
_MAX_URI_LENGTH = 2048


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
CredentialName = Annotated[str, Field(pattern=NAME, description="Unique in the tenant.")]
Prose = Annotated[str, Field(max_length=2000), AfterValidator(check_lines)]


GroupName = Annotated[
    str,
    Field(max_length=300, pattern=GROUP, description="A group of an issuer: `ISSUER:GROUP`."),
    AfterValidator(check_printable),
]
ScopeName = Annotated[
    str, Field(max_length=300, pattern=ISSUER_SCOPE, description="A scope of an issuer: `ISSUER:SCOPE`.")
]


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


Rules = Annotated[list[RuleSent], Field(max_length=_MAX_RULES)]


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
