"""Egress control: the origins and addresses that may be dialled."""
