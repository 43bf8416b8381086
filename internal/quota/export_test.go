package quota

// MaxKeys is how many buckets are kept at most.
const MaxKeys = maxKeys

// Len is how many buckets are kept.
func (q *Quota[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.buckets)
}
