"""The server process: listeners, the hardened HTTP protocol, start and drain."""
