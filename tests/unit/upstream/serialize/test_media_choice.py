"""Media type of a body when the caller names none."""

import pytest

from gateway.domain.http.plans import BodyKind, BodyPlan, FieldPlan
from gateway.upstream.serialize.media_types import fit

FILE = {"base64": "aGk=", "content_type": "image/gif"}
JSON = BodyPlan(kind=BodyKind.JSON, media_type="application/json", takes=("object",))
ANY = BodyPlan(kind=BodyKind.JSON, media_type="application/json")
PATCH = BodyPlan(kind=BodyKind.JSON, media_type="application/json-patch+json", takes=("array",))
TEXT = BodyPlan(kind=BodyKind.TEXT, media_type="text/plain", takes=("string", "integer", "number", "boolean"))
BYTES = BodyPlan(kind=BodyKind.BYTES, media_type="image/png", takes=("file",))
OTHER_BYTES = BodyPlan(kind=BodyKind.BYTES, media_type="image/gif", takes=("file",))
PARTS = BodyPlan(
    kind=BodyKind.MULTIPART,
    media_type="multipart/form-data",
    takes=("object", "array"),
    fields=(FieldPlan(name="f", is_file=True),),
)


@pytest.mark.parametrize(
    ("plans", "value", "expected"),
    [
        ([JSON, TEXT], {"a": 1}, JSON),
        ([JSON, TEXT], "a", TEXT),
        ([JSON, TEXT], 1.0, TEXT),
        ([JSON, TEXT], True, TEXT),
        ([JSON, PATCH], [{"op": "remove"}], PATCH),
        ([JSON, TEXT], [1], JSON),
        ([ANY, TEXT], "a", ANY),
        ([JSON, BYTES, OTHER_BYTES], {"base64": "aGk="}, BYTES),
        ([JSON, BYTES, OTHER_BYTES], FILE, OTHER_BYTES),
        ([ANY, PARTS], {"f": FILE}, PARTS),
        ([ANY, PARTS], {"f": [FILE]}, PARTS),
        ([ANY, PARTS], {"f": "http://x.example"}, ANY),
        ([ANY, PARTS], {"g": FILE}, ANY),
    ],
)
def test_a_body_is_sent_as_a_type_that_can_carry_it(plans: list[BodyPlan], value: object, expected: BodyPlan) -> None:
    """Ours: files as bytes or in parts, else the first type whose schema takes such values, else the first (OAS-2)."""
    assert fit(plans, value) is expected
