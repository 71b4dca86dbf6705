"""Egress control: which origins and addresses may be dialled."""
