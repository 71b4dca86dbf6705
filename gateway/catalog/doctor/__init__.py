"""The doctor: examines an installation. Each finding that is not OK names a remedy."""
