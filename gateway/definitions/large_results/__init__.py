"""Large results: outlines of documents, and reads of their parts; pure, with work that the size bounds."""
