"""The names that `gateway.embed` has: which of them a star import brings, and which it must not hide."""

import json

from gateway import embed
from gateway.embed import HandlerInvalid
from gateway.embed import json as answer_json


def test_a_star_import_hides_no_module_of_the_standard_library() -> None:
    """Ours: `from gateway.embed import *` below `import json` leaves `json` what it was (PRG-1)."""
    names: dict[str, object] = {"json": json}

    exec("from gateway.embed import *", names)

    assert names["json"] is json
    assert names["Gateway"] is embed.Gateway


def test_helpers_and_errors_of_the_contract_can_be_imported_by_name() -> None:
    """Ours: the helper `json`, and the error of a handler that is none (PRG-1, DYN-4)."""
    assert answer_json({"n": 1}).structured == {"n": 1}
    assert HandlerInvalid.code == "definition.handler_invalid"
    assert "HandlerInvalid" in embed.__all__
