"""Operations of a document: arguments, body, responses, security, and the request plan of each."""
