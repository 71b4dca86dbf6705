"""Parts of pages for people: the document, its headers and style, forms and cookies; without scripts."""
