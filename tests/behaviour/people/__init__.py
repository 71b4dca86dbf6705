"""People who sign in and decide; a package, so that its tests share one browser."""
