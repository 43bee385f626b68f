// Package backendv1 is the generated form of the protocol ic.backend.v1.
//
// backend.proto is the source. Nothing but plugins/sdk imports this package: a
// backend and its host speak in the sdk's own types.
package backendv1

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative backend.proto
