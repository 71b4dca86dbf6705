"""Limits of the jobs of live sources: attachments, reports and waits."""

MAX_HELD = 2000
"""Limit on the attachments that one replica opens; a tenant may have 50 live sources."""
REREAD_S = 300.0
"""Pause after which the list is read again without a report, because many servers do not report changes."""
MAX_FOLLOWED = 200
"""Limit on the resources of one source to whose updates its attachment subscribes."""
MAX_PAGES = 64
"""Limit on the pages of one source; further ones are not listed."""
DEBOUNCE_S = 0.25
"""Debounce time: several reports within it are handled as one."""
MAX_NOTICES = 10
"""Limit on the notices of one attachment; each one costs a discovery."""
