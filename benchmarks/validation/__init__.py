"""Measurements of the validation of arguments over real documents: `python -m benchmarks.validation`."""
