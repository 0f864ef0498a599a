package valkeytest

import "syscall"

// attributes end the server with the test's process, however that ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
