"""Liquid, the part of it that can be bounded: a pure interpreter over JSON values that counts every step it takes."""
