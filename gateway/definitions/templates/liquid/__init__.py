"""Bounded subset of Liquid: a pure interpreter over JSON values that counts each step."""
