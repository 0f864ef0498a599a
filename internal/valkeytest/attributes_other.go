//go:build !linux

package valkeytest

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
