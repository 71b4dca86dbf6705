"""The primitives that one connection may list and call: a snapshot bound to a principal and a profile."""
