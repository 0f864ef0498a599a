package load

import "sync"

// queue holds arrivals that wait for a free client, in order: 8 bytes each, in chunks, so that a long wait costs neither
// copying nor memory that stays.
type queue struct {
	mutex  sync.Mutex
	ready  sync.Cond // an arrival came, or the queue was closed
	chunks [][]int64 // the first is being emptied from head on, the last filled
	head   int
	length int64
	taken  int64
	closed bool
}

const chunk = 1024

func newQueue() *queue {
	q := new(queue)
	q.ready.L = &q.mutex
	return q
}

// put adds arrivals that have become due. After close it adds nothing.
func (q *queue) put(due []int64) {
	q.mutex.Lock()
	if !q.closed {
		for _, d := range due {
			last := len(q.chunks) - 1
			if last < 0 || len(q.chunks[last]) == chunk {
				q.chunks = append(q.chunks, make([]int64, 0, chunk))
				last++
			}
			q.chunks[last] = append(q.chunks[last], d)
		}
		q.length += int64(len(due))
	}
	q.mutex.Unlock()
	for range due {
		q.ready.Signal()
	}
}

// take waits for the next arrival. ok is false once the queue is closed, whatever is still in it.
func (q *queue) take() (due int64, ok bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for q.length == 0 && !q.closed {
		q.ready.Wait()
	}
	if q.closed {
		return 0, false
	}
	due = q.chunks[0][q.head]
	q.head++
	q.length--
	q.taken++
	if q.head == len(q.chunks[0]) {
		if len(q.chunks) == 1 {
			q.chunks[0] = q.chunks[0][:0]
		} else {
			q.chunks[0] = nil
			q.chunks = q.chunks[1:]
		}
		q.head = 0
	}
	return due, true
}

// close ends it and tells how many arrivals were taken and how many were still waiting.
func (q *queue) close() (taken, waiting int64) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.closed = true
	q.ready.Broadcast()
	return q.taken, q.length
}
