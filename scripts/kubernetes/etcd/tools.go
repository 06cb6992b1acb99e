//go:build tools

// Package tools names the commands that are built, so that go.mod and go.sum hold all they need.
package tools

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/server/v3"
)
