"""A catalog of documents in the memory of one process, for one client on standard streams; no database."""
