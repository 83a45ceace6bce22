package main

// A plain is the state of a reference: what Work is, without cells.
type plain struct {
	Seed  int64
	Steps int64
	Chain string
	Trail []string
	Pages []string

	ended []string // digests
}

// reference returns the digests of the run's own frame: of the input, and after each superstep.
func reference(graph string, seed int64) []string {
	p := &plain{Seed: seed, Trail: []string{}, Pages: []string{}}
	p.end()
	graphs[graph].reference(p)
	return p.ended
}

// end ends a superstep.
func (p *plain) end() { p.ended = append(p.ended, digestOf(p)) }

// row does visits, each in a superstep of its own.
func (p *plain) row(do func(path string), paths ...string) {
	for _, path := range paths {
		do(path)
		p.end()
	}
}

func (p *plain) leave(path string) {
	p.Steps++
	p.Trail = append(p.Trail, mark(p.Seed, path))
}

func (p *plain) advance(path string) {
	p.Chain = link(p.Chain, path)
	p.leave(path)
}

func (p *plain) write(path string) {
	p.Pages = append(p.Pages, page(p.Seed, path))
	p.advance(path)
}

func (p *plain) turnOver(path string) {
	p.Pages = []string{leaf(p.Seed, path)}
	p.advance(path)
}
