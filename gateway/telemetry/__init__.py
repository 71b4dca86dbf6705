"""Telemetry of the gateway: structured logs, metrics for Prometheus, and traces."""
