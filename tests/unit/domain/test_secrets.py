"""Secret texts in memory: no encoder, log line or model holds them."""

import copy
import json
import logging
import pickle
from dataclasses import asdict, replace
from typing import Any

import msgspec
import orjson
import pytest

from gateway.definitions.changed_fields import describe_change
from gateway.domain.members.secret import Secret
from gateway.kinds.index import KINDS
from gateway.kinds.members import settable, visible
from gateway.web.kinds.annotations import shown_type
from gateway.web.kinds.models import models_of
from tests.support.credentials import make_credential

CANARY = "s3cr3t-canary"
WITH_SECRET = [kind for kind in KINDS if any(one.is_secret for one in settable(kind.of))]


def test_a_secret_is_shown_by_no_text_of_it() -> None:
    """Ours: `repr`, `str`, formats and logs have no secret; two secrets are equal by their texts (TEN-4)."""
    secret, made = Secret(CANARY), make_credential(value=CANARY, username=CANARY)
    record = logging.LogRecord("x", logging.INFO, "x", 1, "%s %r", (secret, made), None)
    assert CANARY not in f"{secret} {secret!r} {made} {made!r} {asdict_of(made)} {record.getMessage()}"
    assert secret == Secret(CANARY)
    assert secret != Secret("other")
    assert len({secret, Secret(CANARY)}) == 1
    assert secret.reveal() == CANARY


def asdict_of(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__slots__}


@pytest.mark.parametrize(
    "encode",
    [json.dumps, orjson.dumps, msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins, pickle.dumps, asdict],
)
def test_no_encoder_takes_a_secret(encode: Any) -> None:
    """Ours: an object with a secret cannot be written by accident; without one it can (TEN-4)."""
    with pytest.raises((TypeError, pickle.PicklingError)):
        encode(make_credential(value=CANARY))
    with pytest.raises(TypeError):
        copy.deepcopy(Secret(CANARY))


@pytest.mark.parametrize("kind", WITH_SECRET, ids=lambda kind: kind.name)
def test_models_show_no_secret(kind: Any) -> None:
    """Ours: no response has a field for a secret, requests hide it, and a response type of a secret is an error."""
    secrets = {one.name for one in settable(kind.of) if one.is_secret}
    models = models_of(kind)
    assert secrets
    assert not secrets & models.shown.model_fields.keys()
    assert not secrets & {one.name for one in visible(kind.of)}
    for model in (models.create, models.whole, models.change):
        shown = model.model_json_schema()["properties"]
        for name in secrets:
            assert "writeOnly" in str(shown[name])
    body = models.create.model_validate({**kind.example, **dict.fromkeys(secrets, CANARY)})
    assert CANARY not in repr(body)
    with pytest.raises(TypeError):
        shown_type(Secret)


async def test_the_trail_names_a_new_secret_without_it() -> None:
    """Ours: an entry records that a secret was replaced, and nothing about it, not even a fingerprint (TEN-4)."""
    before = make_credential()
    sides = await describe_change(before, replace(before, value=Secret(CANARY)), key=b"k")
    assert sides == {"before": {"value": None}, "after": {"value": "(not recorded)"}}
