"""Limits of stored results: their parts, pages and outlines."""

MAX_CONDITION_STEPS = 200_000
"""Limit on the tokens and values that the conditions of one page read; 200,000 small parses take about 0.4 s."""
MAX_TESTED_BYTES = 256 * 1024 * 1024
"""Limit on the bytes of the containers and values that the conditions of one page read."""

MAX_PARTS = 500_000
"""Limit on the commas of a text that is split; a list of so many elements takes about 25 ms."""
MAX_SPLIT_MEMBERS = 50_000
"""Limit on the commas of an object that the C parser splits; hashing so many names takes about 15 ms."""

MAX_OUTLINE_LINES = 60
"""Lines of one outline, which a model reads before it requests a part. Chosen, not measured."""
MAX_OUTLINE_MEMBERS = 20
"""Members of one object that an outline shows, a third of its lines."""
MAX_OUTLINE_LEVELS = 5
"""Levels of an outline; a deeper part is found by reading the part above it."""
MAX_OUTLINE_POINTER_LENGTH = 200
"""Characters of a pointer in an outline; parts with longer names are left out, so that a line stays short."""

MAX_TESTED = 100_000
"""Limit on the elements that are tested for one page; a longer list continues on the next page."""
MAX_POINTER_WORK_BYTES = 1024 * 1024 * 1024
"""Limit on the bytes that are parsed to follow a pointer; each level parses its whole container."""
MAX_OMITTED = 10
"""Elements of a page that are too large for it and are named instead; the page ends at the next one."""
MAX_NAMED = 20
"""Members that are named of an object that is too large for a page."""

MAX_RESULT_POINTER_LENGTH = 4096
"""Characters of the pointer of a part. Member names of results can be long, URLs for example."""
MAX_CONDITION_POINTER_LENGTH = 128
"""Characters of a condition's pointer, which is followed in each tested element."""
MAX_LIMIT = 10_000
"""The highest `limit`; a page ends earlier at its size in bytes."""
MAX_OFFSET = 1_000_000_000
"""The highest `offset`, above the characters of any stored result; an integer without bound would be refused late."""
MAX_CONDITIONS = 5
"""Conditions of one request; each is tested on each element, within the steps of a page."""
MAX_SOUGHT_LENGTH = 1000
"""Characters of a text that a condition looks for in each element. Chosen, not measured."""
