module github.com/degradedmode/ic/test/cedar

go 1.26.7

require (
	github.com/cedar-policy/cedar-go v1.9.2
	github.com/degradedmode/ic v0.0.0
	golang.org/x/crypto v0.59.0
)

require (
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/hiddeco/sshsig v0.2.0 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/exp v0.0.0-20220921023135-46d9e7742f1e // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/degradedmode/ic => ../..
