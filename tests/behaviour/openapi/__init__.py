"""Calls of imported documents; a package, so that its tests share one gateway."""
