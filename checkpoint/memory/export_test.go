package memory

// Bases returns how many bases the store keeps.
func (s *Store) Bases() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bases)
}
