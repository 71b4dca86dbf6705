"""Handlers written in Python: the function's input, its execution, and its allowed return values."""
