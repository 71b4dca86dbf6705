"""Requests about the primitives of live sources: acceptance of held definitions, and the list."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gateway.admin.requests.limits import MAX_NAMES, MAX_REMOTE_NAME_LENGTH
from gateway.catalog.live.overview import LivePrimitiveState
from gateway.domain.members.formats import DIGEST
from gateway.domain.members.values import check_printable
from gateway.domain.primitives import Family
from gateway.web.models import Absent, BodyModel, ListQuery

EffectiveName = Annotated[str, Field(min_length=1, max_length=MAX_REMOTE_NAME_LENGTH), AfterValidator(check_printable)]


class LiveSourceAccept(BodyModel):
    """Held definitions to accept."""

    names: Annotated[
        list[EffectiveName] | None,
        Field(
            max_length=MAX_NAMES,
            description="Names, URIs or URI templates to accept; null accepts all held definitions.",
        ),
    ] = None
    digests: Annotated[
        list[Annotated[str, Field(pattern=DIGEST)]] | None,
        Field(
            max_length=MAX_NAMES,
            description="Digests of the reviewed definitions; any other definition is refused (409).",
        ),
    ] = None


class LivePrimitiveListQuery(ListQuery):
    """Search, filters and order of the primitives of a live source."""

    family: Annotated[Family | Absent, Field(description="Only primitives of this family.")] = None
    state: Annotated[LivePrimitiveState | Absent, Field(description="Only primitives in this state.")] = None
    suspicious: Annotated[
        bool | Absent, Field(description="Only primitives with (true) or without (false) suspicious texts.")
    ] = None
    sort: Annotated[
        Literal["place", "-place"] | Absent,
        Field(description="Orders by family and remote name; a `-` in front reverses the order."),
    ] = None
