"""Searches of untrusted text for secrets, personal data and injected instructions, even if they are disguised."""
