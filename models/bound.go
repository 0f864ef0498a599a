package models

import "fencepost.dev/history"

type bounds struct{}

func newBounds(in *Input) *bounds                { return &bounds{} }
func (b *bounds) of(op *history.Operation) int64 { return never }
