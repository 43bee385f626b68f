// Package templates holds example policies, made from the document types
// themselves, so that they are canonical by construction, and writes signed
// policy folders.
//
// May import: policy and what policy imports. Must never hold a key: people's
// public keys and signers are passed in.
package templates
