"""Settings of live sources, by kind."""
