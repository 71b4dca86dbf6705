"""The admin API over HTTP; a package, so that its tests share one gateway."""
