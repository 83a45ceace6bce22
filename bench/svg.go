package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
)

// A look is how a chart is drawn.
type look struct {
	title, x, y string
	logX, logY  bool
}

// The picture, in units of SVG.
const (
	wide, high           = 720, 420
	left, right          = 84, 28
	top, bottom          = 92, 58
	plotWide, plotHigh   = wide - left - right, high - top - bottom
	legendLetter, marker = 7.3, 3.6
)

// The colours can be told apart by most people whose eyes confuse some; in the dark they are
// lighter.
const style = `
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #24292f; }
.title { font-size: 16px; font-weight: 600; }
.axis { fill: #57606a; }
.card { fill: #ffffff; stroke: #d0d7de; }
.grid { stroke: #e4e8ec; }
.base { stroke: #8c959f; }
path, circle { stroke-width: 2.2; fill: none; }
circle { stroke: none; }
.s0 { stroke: #0072b2; } circle.s0 { fill: #0072b2; }
.s1 { stroke: #d55e00; } circle.s1 { fill: #d55e00; }
.s2 { stroke: #00805f; } circle.s2 { fill: #00805f; }
.s3 { stroke: #b0508c; } circle.s3 { fill: #b0508c; }
.s4 { stroke: #8a6d00; } circle.s4 { fill: #8a6d00; }
.s5 { stroke: #57606a; } circle.s5 { fill: #57606a; }
path.s1 { stroke-dasharray: 7 4; } path.s2 { stroke-dasharray: 2 3; } path.s3 { stroke-dasharray: 9 3 2 3; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.axis { fill: #9da7b1; }
.card { fill: #0d1117; stroke: #30363d; }
.grid { stroke: #21262d; }
.base { stroke: #6e7681; }
.s0 { stroke: #56b4e9; } circle.s0 { fill: #56b4e9; }
.s1 { stroke: #ff8c42; } circle.s1 { fill: #ff8c42; }
.s2 { stroke: #2fc79c; } circle.s2 { fill: #2fc79c; }
.s3 { stroke: #e69bc6; } circle.s3 { fill: #e69bc6; }
.s4 { stroke: #e8c547; } circle.s4 { fill: #e8c547; }
.s5 { stroke: #9da7b1; } circle.s5 { fill: #9da7b1; }
}
`

const styles = 6

// svg draws the chart. What it says is in the title and the names of lines and axes: a reader who
// can't see it hears them.
func (c chart) svg(l look) []byte {
	c = c.within(l)
	x, y := c.axes(l)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`,
		wide, high, wide, high, escaped(l.title))
	fmt.Fprintf(&b, "\n<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<rect class="card" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", wide-1, high-1)
	words(&b, 20, 32, "title", "start", l.title)
	c.legend(&b)
	for _, tick := range x.ticks {
		at := x.place(tick)
		fmt.Fprintf(&b, `<path class="grid" style="stroke-width:1" d="M%.1f %dV%d"/>`, at, top, high-bottom)
		words(&b, at, high-bottom+20, "axis", "middle", short(tick))
	}
	for _, tick := range y.ticks {
		at := y.place(tick)
		fmt.Fprintf(&b, `<path class="grid" style="stroke-width:1" d="M%d %.1fH%d"/>`, left, at, wide-right)
		words(&b, left-10, at+4.5, "axis", "end", short(tick))
	}
	fmt.Fprintf(&b, `<path class="base" style="stroke-width:1.2" d="M%d %dV%dH%d"/>`+"\n", left, top, high-bottom, wide-right)
	words(&b, left+plotWide/2, high-16, "axis", "middle", l.x)
	fmt.Fprintf(&b, `<text class="axis" text-anchor="middle" transform="translate(22 %d) rotate(-90)">%s</text>`+"\n",
		top+plotHigh/2, escaped(l.y))
	for i, line := range c.lines {
		line.draw(&b, i, x, y)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// within leaves out points that have no place on a logarithmic axis: the difference of two figures
// may be nothing at all.
func (c chart) within(l look) (some chart) {
	for _, line := range c.lines {
		for _, p := range line.points {
			if (p.x > 0 || !l.logX) && (p.y > 0 || !l.logY) {
				some.point(line.name, p.x, p.y)
			}
		}
	}
	return some
}

func (l line) draw(b *bytes.Buffer, i int, x, y axis) {
	fmt.Fprintf(b, `<path class="s%d" stroke-linejoin="round" d="`, i%styles)
	for k, p := range l.points {
		command := "L"
		if k == 0 {
			command = "M"
		}
		fmt.Fprintf(b, "%s%.1f %.1f", command, x.place(p.x), y.place(p.y))
	}
	b.WriteString(`"/>`)
	for _, p := range l.points {
		fmt.Fprintf(b, `<circle class="s%d" cx="%.1f" cy="%.1f" r="%.1f"><title>%s: %s, %s</title></circle>`,
			i%styles, x.place(p.x), y.place(p.y), marker, escaped(l.name), short(p.x), short(p.y))
	}
	b.WriteByte('\n')
}

// legend names the lines in rows under the title, as many in a row as there is room for.
func (c chart) legend(b *bytes.Buffer) {
	x, y := 20.0, 58.0
	for i, line := range c.lines {
		need := 34 + float64(len([]rune(line.name)))*legendLetter + 16
		if x > 20 && x+need > wide-10 {
			x, y = 20, y+19
		}
		fmt.Fprintf(b, `<path class="s%d" d="M%.1f %.1fh26"/><circle class="s%d" cx="%.1f" cy="%.1f" r="%.1f"/>`,
			i%styles, x, y-4.5, i%styles, x+13, y-4.5, marker)
		words(b, x+34, y, "", "start", line.name)
		x += need
	}
	b.WriteByte('\n')
}

func words(b *bytes.Buffer, x, y float64, class, anchor, what string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`, x, y, class, anchor, escaped(what))
	b.WriteByte('\n')
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer takes all
	return b.String()
}

// An axis places values between two ends.
type axis struct {
	low, high float64
	log       bool
	from, to  float64 // in the picture
	ticks     []float64
}

func (c chart) axes(l look) (x, y axis) {
	x = axis{low: math.Inf(1), high: math.Inf(-1), log: l.logX, from: left, to: wide - right}
	y = axis{low: math.Inf(1), high: math.Inf(-1), log: l.logY, from: high - bottom, to: top}
	for _, line := range c.lines {
		for _, p := range line.points {
			x.low, x.high = min(x.low, p.x), max(x.high, p.x)
			y.low, y.high = min(y.low, p.y), max(y.high, p.y)
		}
	}
	x.scale(false)
	y.scale(true)
	return x, y
}

// scale chooses the ticks; round: also ends, so that nothing touches the frame.
func (a *axis) scale(round bool) {
	if !a.log {
		a.low = min(a.low, 0)
	}
	if a.high <= a.low {
		a.high = a.low*2 + 1
	}
	steps := a.steps()
	if round {
		for i, s := range steps {
			if s <= a.low && (i+1 == len(steps) || steps[i+1] > a.low) {
				a.low = s
				break
			}
		}
		for _, s := range steps {
			if s >= a.high {
				a.high = s
				break
			}
		}
	}
	for _, s := range steps {
		if s >= a.low*(1-1e-9) && s <= a.high*(1+1e-9) {
			a.ticks = append(a.ticks, s)
		}
	}
}

// steps are round numbers from below the axis to above it: not more than there is room for.
func (a *axis) steps() []float64 {
	var all []float64
	if !a.log {
		width := math.Pow(10, math.Floor(math.Log10(a.high-a.low)))
		for _, f := range []float64{0.1, 0.2, 0.5, 1, 2} {
			if (a.high-a.low)/(width*f) <= 7 {
				width *= f
				break
			}
		}
		for s := math.Floor(a.low/width) * width; s <= a.high+width; s += width {
			all = append(all, s)
		}
		return all
	}
	factors := []float64{1, 2, 5}
	if math.Log10(a.high/a.low) > 2.2 {
		factors = []float64{1}
	}
	for e := math.Floor(math.Log10(a.low)) - 1; e <= math.Ceil(math.Log10(a.high))+1; e++ {
		for _, f := range factors {
			all = append(all, f*math.Pow(10, e))
		}
	}
	return all
}

func (a *axis) place(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	return a.from + (a.to-a.from)*(v-low)/(high-low)
}

// short writes a number as an axis does: 0.5, 20, 3k, 1M.
func short(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= unit.size*0.9999 {
			return strconv.FormatFloat(v/unit.size, 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
