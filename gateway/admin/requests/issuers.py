"""Request models of the clients of issuers: the members of their declarations, with the secret."""

from typing import Annotated, Any

from pydantic import Field

from gateway.admin.requests.models import SecretText
from gateway.domain.members.formats import NAME, PRINTABLE
from gateway.domain.tenancy.issuers import IntrospectionClient, SignInClient
from gateway.kinds.members import settable
from gateway.web.kinds.annotations import Fields, make_model, sent_fields
from gateway.web.models import GIVEN, Absent, BodyModel

_SECRET = Annotated[
    SecretText | Absent,
    GIVEN,
    Field(description="The client's secret. Without it and a reference, the stored secret or reference is kept."),
]
_PARAMETERS = Annotated[
    dict[
        Annotated[str, Field(min_length=1, max_length=100, pattern=NAME)],
        Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE)],
    ],
    Field(max_length=10, description="Further parameters of authorization requests."),
]
_SIGN_IN: Any = make_model(
    "SignInClientGiven",
    BodyModel,
    "The gateway's own client at the issuer. With it, the gateway signs people in and issues tokens to MCP clients.",
    {
        **sent_fields(settable(SignInClient)),
        "client_secret": (_SECRET, None),
        "parameters": (_PARAMETERS, Field(default_factory=dict[str, str])),
    },
)
_INTROSPECTION: Any = make_model(
    "IntrospectionGiven",
    BodyModel,
    "The gateway's client at the issuer's introspection endpoint (RFC 7662).",
    {**sent_fields(settable(IntrospectionClient)), "client_secret": (_SECRET, None)},
)
CLIENTS: Fields = {
    "sign_in": (
        Annotated[
            _SIGN_IN | None,
            Field(description="The gateway's client at the issuer; null: clients get tokens from the issuer itself."),
        ],
        None,
    ),
    "introspection": (
        Annotated[
            _INTROSPECTION | None,
            Field(description="The gateway's client at the introspection endpoint; null: only JWTs are accepted."),
        ],
        None,
    ),
}
"""The fields of the gateway's own clients in requests about issuers."""
