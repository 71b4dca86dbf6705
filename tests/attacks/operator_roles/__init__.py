"""Attacks by operators with limited rights."""
