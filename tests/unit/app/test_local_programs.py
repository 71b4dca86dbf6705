"""Settings of a gateway for one person: which gateways print a key, and what they may call."""

from typing import Any

import pytest

from gateway.app.local.programs import local_settings
from gateway.settings import Settings
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY


@pytest.mark.parametrize(
    "shared",
    [
        {"host": "0.0.0.0"},
        {"database_url": "postgresql://db/x", "redis_url": "redis://r"},
        {"public_url": "https://gateway.example.com"},
        {"admin_host": "0.0.0.0", "admin_port": 9000},
    ],
)
def test_a_shared_gateway_prints_no_key_and_opens_no_address(shared: dict[str, Any]) -> None:
    """Ours: only the person at this machine gets a key without asking (PRG-1, SEC-1)."""
    keys = {"operator_key": OPERATOR_KEY, "secret_keys": (SECRET_KEY,)}

    assert local_settings(Settings.model_validate({**keys, **shared}), ("127.0.0.1:9",)) is None


def test_a_gateway_for_one_person_may_call_the_addresses_of_its_program() -> None:
    """Ours: beside those of the settings; its logs begin at warnings unless set otherwise (PRG-1)."""
    quiet = local_settings(Settings.model_validate({"egress_allow": ("10.0.0.1:80",)}), ("127.0.0.1:9",))
    loud = local_settings(Settings.model_validate({"log_level": "info"}), ())

    assert quiet is not None
    assert loud is not None
    assert (quiet.egress_allow, quiet.log_level) == (("10.0.0.1:80", "127.0.0.1:9"), "warning")
    assert loud.log_level == "info"
