"""Searches of untrusted texts for secrets, personal data and injected instructions, even if they are disguised."""
