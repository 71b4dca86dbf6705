"""Benchmarks of calls, lists, imports, starts and sessions, measured beside other servers in one run."""
