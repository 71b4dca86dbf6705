"""Limits of the review of changed documents: findings and comparisons."""

MAX_OF_TOOL = 20
"""Limit on the differences that are listed for one tool."""
MAX_OF_DOCUMENT = 200
"""Limit on the listed differences of the documents' outlines."""
MAX_STEPS = 20_000
"""Limit on the schemas that are compared for one tool."""
MAX_IN_ALL = 2_000
"""Differences that are listed for all tools of one import, most harmful first; each has two excerpts."""
MAX_SENSITIVE = 50
"""Different sensitive changes in the summary of a review, each with its number of tools."""
MAX_COUNTED = 1_000
"""Differences of one tool that are compared; a tool with as many counts as breaking."""
MAX_NAMED = 5
"""Tools that the summary names for each sensitive change; the others are counted."""
MAX_NEW_FINDINGS = 300
"""Findings of one version that the previous one lacks: the findings of texts, and about 100 new hosts."""
MAX_EXCERPT_LENGTH = 400
"""Characters of an excerpt, with invisible ones escaped: about five lines of a review page."""
MAX_OUTLINE_STEPS = 200_000
"""Pairs of values that are compared in two outlines, which bound the worker's CPU time. Chosen, not measured."""
MAX_FINDINGS = 200
"""Findings of one import; the last one reports that there are more. A reviewer decides after the first few."""
MIN_SEARCHED_LENGTH = 12
"""Characters of a searched text; every suspicious phrase and secret has at least this length."""
SEARCH_BATCH_BYTES = 64 * 1024
"""Bytes that are searched together first: most batches are clear, and one search costs less than many."""
SMALL_BATCH_BYTES = 8 * 1024
"""Bytes that are searched together in a batch with a finding, before its texts are searched one by one."""
