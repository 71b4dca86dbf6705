"""Export of spans, and that nothing of it is loaded otherwise."""

import pytest

from gateway.app.tracing import build_traces
from gateway.settings import Settings

_ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("environ", "is_wanted"),
    [
        ({}, False),
        (_ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({**_ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**_ENDPOINT, "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_spans_are_made_only_for_a_collector(environ: dict[str, str], is_wanted: bool) -> None:
    """Ours: where no exporter is set there is nothing to pay for (SRV-6)."""
    assert (build_traces(Settings.model_validate({}), environ) is not None) is is_wanted


def test_without_the_extra_the_gateway_starts_and_exports_nothing() -> None:
    """Ours: a collector named by the cluster is no reason not to serve."""
    settings = Settings.model_validate({})

    assert build_traces(settings, _ENDPOINT, exporter="gateway.telemetry.not_installed") is None
