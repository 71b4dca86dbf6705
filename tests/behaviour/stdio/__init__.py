"""Servers on standard streams; a package, so that its tests share one gateway."""
