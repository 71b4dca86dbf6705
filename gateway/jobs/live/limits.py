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
LEASE_RECHECK_S = 0.1
"""Seconds between two looks at a lease that another replica is about to release."""
CHECK_WAIT_S = 60.0
"""Seconds that the check of an agent's definitions waits for processor time (docs/providers.md)."""
CHECK_TIME_PER_S = 0.2
"""Processor time in seconds per second for the checks of one tenant; the burst is twice `DISCOVERY_CPU_S`."""
ROUND_S = 1.0
"""Seconds between two rounds that acquire and renew leases; the lease of 4 s outlasts two failed rounds."""
RECHECK_S = 30.0
"""Seconds between two comparisons with PostgreSQL: the delay of a change whose event was lost (docs/live-sources.md).
"""
ATTACH_S = 15.0
"""Seconds for a connection to a live source, as until the first byte of an upstream's response."""
FIRST_RETRY_S = 1.0
"""Pause in seconds after the first failed attachment; it doubles with each further one."""
LAST_RETRY_S = 300.0
"""Longest pause in seconds: a source that works again is attached within five minutes."""
STABLE_S = 60.0
"""Seconds after which an attachment counts as stable, and the back-off ends."""
CLOSING_S = 2.0
"""Seconds for the release of leases at the end; otherwise they expire after 4 s."""
DISCOVERY_WAIT_S = 60.0
"""Seconds that a discovery waits for one of the replica's four slots, twice the time of one discovery."""
LIVENESS_S = 1.0
"""Seconds between two looks at the heartbeats of the replicas that take part in requests."""
MAX_WAITING = 1000
"""Notifications of one request that wait for its client; further ones are dropped."""
DISCOVER_S = 30.0
"""Seconds for one discovery, of up to 20 pages for each of four families."""
DISCOVERY_RETRY_S = 2.0
"""Pause in seconds before the next discovery, for each failure in a row."""
SUBSCRIBE_S = 10.0
"""Seconds for the subscriptions of one source. Chosen, not measured."""
MAX_DISCOVERY_FAILURES = 4
"""Failed discoveries in a row after which the source is attached again."""
PACE_S = 5.0
"""Pause in seconds between discoveries after a burst, because each one with a change advances the tenant's revision and
is recorded.
"""
PAGE_READ_S = 5.0
"""Seconds for the reading of one page, a part of a discovery."""
PAGES_READ_S = 15.0
"""Seconds for the reading of all pages of a source: half of the time of a discovery."""
MAX_SHOWN_URI = 100
"""Characters of the URI of a page in a notice."""
MAX_OWN_ATTACHMENTS = 500
"""Connections of a replica to sources that another replica has attached; the least used one ends."""
OWN_IDLE_S = 300.0
"""Seconds after which such a connection ends if no request uses it."""
MAX_KNOWN_NOTICES = 1_000
"""Notices that a replica remembers, so that each is stored once in a while; a forgotten one is stored again."""
NOTICE_REPEAT_S = 600.0
"""Seconds after which a notice is stored again, because a discovery replaces the notices of a source."""
MAX_UPDATES = 500
"""URIs that wait to be published; further ones are dropped."""
