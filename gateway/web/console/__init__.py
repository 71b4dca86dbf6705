"""Pages for people: sign-in, and the approvals that wait for a decision. Server-rendered, without scripts."""
