"""Operations of a document: their arguments, bodies, responses, security and request plans."""
