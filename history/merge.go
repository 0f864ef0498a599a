package history

import (
	"container/heap"
	"io"
	"iter"
)

// stream gives operations by Call, a batch at a time; io.EOF after the last. A batch is valid until the next.
type stream interface {
	next() ([]Operation, error)
	close()
}

// head is a stream in a merge. It is opened when its turn comes, so that only parts that overlap are open at once.
type head struct {
	first int64 // no operation of it is called before
	base  string
	part  uint32
	open  func() (stream, error)

	stream stream
	batch  []Operation
	at     int
	order  int // ties go to the lesser
}

func (h *head) call() int64 {
	if h.stream == nil {
		return h.first
	}
	return h.batch[h.at].Call
}

func (h *head) before(other *head) bool {
	a, b := h.call(), other.call()
	return a < b || a == b && h.order < other.order
}

type heads []*head

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].before(h[j]) }
func (h heads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)        { *h = append(*h, x.(*head)) }
func (h *heads) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// merge yields the operations of all streams by Call, and those of one Call by the order of the streams. After an error it
// ends. It closes what it opened.
func merge(streams []*head) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		h := make(heads, len(streams))
		for i, s := range streams {
			s.order = i
			h[i] = s
		}
		heap.Init(&h)
		defer func() {
			for _, s := range h {
				if s.stream != nil {
					s.stream.close()
				}
			}
		}()
		for len(h) > 0 {
			top := h[0]
			if top.stream == nil {
				s, err := top.open()
				if err != nil {
					yield(Operation{}, err)
					return
				}
				top.stream, top.batch, top.at = s, nil, 0
			}
			for top.at < len(top.batch) {
				// Everything up to the next stream's head can go at once.
				if !yield(top.batch[top.at], nil) {
					return
				}
				top.at++
				if top.at < len(top.batch) && (len(h) > 1 && h[1].before(top) || len(h) > 2 && h[2].before(top)) {
					break
				}
			}
			if top.at == len(top.batch) {
				batch, err := top.stream.next()
				if err == io.EOF {
					top.stream.close()
					heap.Pop(&h)
					continue
				}
				if err != nil {
					yield(Operation{}, err)
					return
				}
				top.batch, top.at = batch, 0
			}
			heap.Fix(&h, 0)
		}
	}
}
