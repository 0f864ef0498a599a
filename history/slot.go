package history

// Slot is where a recorder keeps an operation that has begun; it is handed back to End.
type Slot struct {
	segment *segment
	index   uint32
}

type segment struct{}
