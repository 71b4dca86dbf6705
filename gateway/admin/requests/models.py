"""Models of request bodies and queries; unknown fields and parameters are refused.

The OpenAPI document is generated from them.
"""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic.json_schema import SkipJsonSchema

from gateway.domain.tenancy.limits import MAX_OVERLAP_S
from gateway.web.models import BodyModel


def _check_secret(value: str) -> str:
    if any(character in "\r\n\0" for character in value):
        raise ValueError("must not hold line breaks or NUL")
    return value


CutOut = SkipJsonSchema[bytes]
"""JSON bytes of a document or archive that `gateway.admin.large_bodies` extracted; clients cannot send this type."""

SecretText = Annotated[
    str, Field(min_length=1, max_length=16_384, json_schema_extra={"writeOnly": True}), AfterValidator(_check_secret)
]
UserName = Annotated[str, Field(max_length=1024), AfterValidator(_check_secret)]
Pattern = Annotated[str, Field(min_length=1, max_length=300)]

Rate = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


class KeyRotate(BodyModel):
    """The rotation of a key; without a body, the old secret expires at once."""

    is_optional = True

    overlap_s: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_OVERLAP_S,
            description="Seconds for which the old secret remains valid, at most 30 days; 0: it expires at once.",
        ),
    ] = 0


class KeyCheck(BodyModel):
    """A text that may contain keys, such as a line of a log."""

    text: Annotated[str, Field(min_length=1, max_length=65536, description="The text; it is not stored.")]
    revoke: Annotated[bool, Field(description="True to revoke the keys whose secret the text contains.")] = False


class SecretRotate(BodyModel):
    """The re-encryption of all values that an older secret key encrypted."""

    is_optional = True

    dry_run: Annotated[
        bool, Field(description="True reports the values that would be re-encrypted, and changes nothing.")
    ] = False
