"""Collections of the declared kinds: one engine for their verbs, and the special functions of each kind."""
