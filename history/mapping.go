package history

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a range of addresses that shows a file.
type mapping struct {
	address unsafe.Pointer
	length  uintptr
}

// mapSegment maps a segment's file, which is header bytes and then capacity slots.
func mapSegment(f *os.File, header, capacity uint32) (*segment, error) {
	length := uintptr(header) + uintptr(capacity)*uintptr(operationSize)
	address, err := unix.MmapPtr(int(f.Fd()), 0, nil, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("history: mapping %s: %w", f.Name(), err)
	}
	s := &segment{
		path:    f.Name(),
		half:    capacity / 2,
		slots:   unsafe.Slice((*Operation)(unsafe.Add(address, header)), capacity),
		mapping: mapping{address, length},
	}
	runtime.AddCleanup(s, func(m mapping) { _ = unix.MunmapPtr(m.address, m.length) }, s.mapping)
	return s, nil
}

// release takes the file away from the addresses and leaves zero pages there, which cost nothing until they are touched.
func (m mapping) release() {
	// If this fails, the file stays mapped until the cleanup. Nothing else depends on it.
	_, _ = unix.MmapPtr(-1, 0, m.address, m.length, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED|unix.MAP_NORESERVE)
}

// touch makes every page of a mapping that nobody else uses yet present and writable, so that no client pays for it: a
// page's first write costs a microsecond or two, which is thirty nanoseconds for each of the 64 slots on it.
func (m mapping) touch() {
	const page = 4096
	for at := uintptr(0); at < m.length; at += page {
		atomic.AddUint32((*uint32)(unsafe.Add(m.address, at)), 0)
	}
}

// dropped is where a segment's header counts the operations that could not be recorded.
func (m mapping) dropped() *int64 { return (*int64)(unsafe.Add(m.address, headerDropped)) }

// allocate gives a new file its blocks, so that a full disk is an error here and not a SIGBUS when a slot is written.
func allocate(f *os.File, size int64) error {
	err := preallocate(f, size)
	if errors.Is(err, errors.ErrUnsupported) {
		zeros := make([]byte, 1<<20)
		for at := int64(0); at < size; at += int64(len(zeros)) {
			if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
				return err
			}
		}
		return nil
	}
	return err
}
