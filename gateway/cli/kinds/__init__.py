"""Commands of the declared kinds: list, show, create, set, update and delete."""
