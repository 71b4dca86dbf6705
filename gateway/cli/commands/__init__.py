"""Commands, one module each; nouns of the admin API have a group each."""
