package policy

// ReadForTest reads a document that need not be canonical.
func ReadForTest(name string, src []byte) (any, error) {
	doc := newDocument(name)
	return doc, parse(name, src, doc, nil)
}

// ReadCanonicalForTest reads a document as Load does.
func ReadCanonicalForTest(name string, src []byte) (any, error) {
	doc := newDocument(name)
	return doc, parseCanonical(name, src, doc)
}
