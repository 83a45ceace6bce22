package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable takes control characters, which could do things to a terminal, out of text that comes
// from a catalogue or a question.
func printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(clean), " ")
}

func shortened(text string) string {
	const most = 80
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// paragraphs wraps texts and puts blank lines between them.
func paragraphs(texts ...string) string {
	var all []string
	for _, t := range texts {
		all = append(all, wrap(t, "", ""))
	}
	return strings.Join(all, "\n")
}

// columns is the width of an answer. It does not depend on the terminal: an answer is part of the
// run, and the same everywhere.
const columns = 78

// wrap breaks text into lines that begin with indent, the first one with first.
func wrap(text, first, indent string) string {
	var b strings.Builder
	line, empty := first, true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			b.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return b.String() + line + "\n"
}

// listing joins names: a, b and c.
func listing(names []string) string {
	if len(names) == 1 {
		return printable(names[0])
	}
	var all []string
	for _, n := range names {
		all = append(all, printable(n))
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}

// clean is printable, line by line.
func clean(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, printable(line))
	}
	return strings.Join(lines, "\n")
}
