"""Limits of the reading of documents: archives, references and values."""

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
"""Bytes of all files of an archive: twice those of one document, because files may be left out of the bundle."""
MAX_FILES = 10_000
"""Files of one archive, each of which costs memory besides its bytes. DigitalOcean's archive has 3,200."""
MAX_RATIO = 100
"""Ratio of unpacked to packed bytes, once the files exceed `FREE_BYTES`: text packs to about a tenth, a zip bomb to a
thousandth.
"""
MAX_PATH_LENGTH = 1024
"""Characters of the path of a file in an archive, as in `PATH_MAX` of macOS."""
MAX_REFERENCE_CHAIN = 32
"""References that lead to each other before a target; a longer chain is treated as circular. Chosen, not measured."""
MAX_BUNDLED_NAME_LENGTH = 80
"""Characters of the name of a component that replaces a file, without the number that makes it unique."""
MAX_BUNDLE_WARNINGS = 100
"""Warnings of one bundle about references without a target; a report keeps 500 of all kinds."""
MAX_ROOT_CANDIDATES = 20
"""Files of one folder depth that are parsed in the search for the root document."""
MAX_MISSING_FILES = 100
"""Files that one round of fetches requests; a document may fetch 100 files in all (docs/openapi.md)."""
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
"""Bytes of one document; the largest of the measured documents has 13 MB. The worker's memory follows from it."""
MAX_DEPTH = 100
"""Levels of a document. The measured documents have at most 24; some later steps are recursive."""
MAX_NODES = 1_000_000
"""Values of a document, with aliases counted as written out. The largest of the measured documents has 258,000."""
MAX_HTML_LENGTH = 20_000
"""Characters that are read as HTML; the rest is dropped, because unclosed tags cost quadratic time."""
MAX_NUMBER_LENGTH = 300
"""Characters of a number; a longer one stays text, because its conversion takes quadratic time."""
FREE_BYTES = 4 * 1024 * 1024
"""Unpacked bytes up to which the ratio is not limited: a small archive of repeated text packs better than a large one.
"""
