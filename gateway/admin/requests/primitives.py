"""Request models of primitives and profiles.

The catalog validates the content of definitions and handlers.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from gateway.domain.members.formats import GROUP, ISSUER_SCOPE
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.domain.members.values import check_printable
from gateway.web.models import BodyModel, QueryModel

Uri = Annotated[str, Field(min_length=1, max_length=MAX_URL_LENGTH), AfterValidator(check_printable)]
Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_printable)]


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
