"""What faults cost, measured: `python -m benchmarks.faults`."""
