"""Measurements of the cost of faults: `python -m benchmarks.faults`."""
