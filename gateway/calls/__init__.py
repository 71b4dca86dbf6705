"""The stations between a registry and a handler: every call passes each of them, whatever face it came through."""
