"""Sphinx configuration of the site; `python -m tests.site` writes the pages that it reads."""

project = "MCP gateway"
extensions = ["myst_parser"]
root_doc = "index"
html_theme = "furo"
html_title = project
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, list[str]] = {"footer_icons": []}
# The anchors are those of GitHub: a link to a heading is checked by its words.
myst_heading_anchors = 6
# Summaries of results would be fetched, which a browser refuses for files.
html_show_search_summary = False
# Blocks with `…` in their JSON are shown without colours.
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "none"
