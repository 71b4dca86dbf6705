"""Codes of errors as clients of each revision read them."""

from typing import Any

from gateway.errors import CapabilityMissing, ClientSilent, Fault
from gateway.protocol.errors import code_of, to_mcp_in


def test_content_that_does_not_match_its_form_is_the_clients_fault() -> None:
    """MCP: an invalid response has an appropriate code; only silence ends as an internal error (SRV-1)."""
    fault = Fault(pointer="/name", reason="is not of type string")
    assert code_of(ClientSilent("it does not match its form", faults=[fault])) == -32602
    assert code_of(ClientSilent("the client did not respond in time")) == -32603


def test_a_missing_mode_of_elicitation_is_named() -> None:
    """MCP: `requiredCapabilities` names what the client has to declare (SRV-1)."""
    named: dict[str, dict[str, Any]] = {
        "elicitation": {"elicitation": {}},
        "elicitation.form": {"elicitation": {"form": {}}},
        "elicitation.url": {"elicitation": {"url": {}}},
        "roots": {"roots": {}},
    }
    for missing, required in named.items():
        error = to_mcp_in("2026-07-28", CapabilityMissing("missing", capability=missing), "c").error
        assert (error.code, error.data["requiredCapabilities"]) == (-32021, required)
