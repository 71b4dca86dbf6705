"""Limits of the approval pages: shown requests and lists, and sessions."""

MAX_COMMENT_LENGTH = 1000
"""Characters of the comment of a decision, as many as the API accepts."""

MAX_SHOWN_BODY_LENGTH = 64 * 1024
"""Characters of a shown request; a person does not read more before a decision. Longer texts are cut with a note."""
MAX_LINE_LENGTH = 4000
"""Characters of a shown line; a body without line breaks is one line."""
MAX_COMPARED = 400
"""Limit on the lines of a compared request, because the comparison takes quadratic time."""
MAX_FORMATTED_LENGTH = 256 * 1024
"""Bytes of a JSON body that is indented; indentation lengthens it, and four times the shown length is cut anyway."""

MAX_WAITING = 100
"""Waiting approvals on one page; a link leads to the next ones."""
MAX_RECENT = 50
"""Newest approvals, among which those with a decision are listed below the waiting ones."""
MAX_EARLIER = 50
"""Limit on the earlier approvals of a tool among which the last approved one is searched."""

MAX_SESSION_S = 8 * 3600
"""Seconds after which a session ends even if it is used: a working day. The key has to be entered again."""
