package checkpoint

import "encoding/json"

// An Edit is the Data of an [Edited] entry, whose Path is the frame. Its Delta is what was
// written to the state that the open superstep began with, its Outer the merged Folds.
type Edit struct {
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Voids are visits of open supersteps that don't count any more, since the edit changes
	// what they began with. They run again.
	Voids []string `json:"voids,omitempty"`
	// Recorded are merged Folds of what a Loop did as a whole, if the frame is its.
	Recorded json.RawMessage `json:"recorded,omitempty"`
	// Inside are merged Folds of the frames inside that share the state, by path: what they
	// had done so far, on the state as it was edited.
	Inside map[string]json.RawMessage `json:"inside,omitempty"`
}

// A Tag is the Data of a [Tagged] entry. A name is given once in a run, and stays.
type Tag struct {
	Name   string `json:"name"`
	Seq    uint64 `json:"seq"` // of the checkpoint's entry
	Author string `json:"author,omitempty"`
}

// An Origin says of which run's checkpoint a fork is the continuation. The first machine of
// the fork is a base that its store keeps: see [Store.Fork].
type Origin struct {
	Run  string `json:"run"`
	Seq  uint64 `json:"seq"`  // of the checkpoint's entry
	Base string `json:"base"` // digest of the machine: SHA-256, in hexadecimal
	// Shelf is the digest of what effects have returned behind the checkpoint, which is kept as
	// the base is; "" if there is nothing.
	Shelf string `json:"shelf,omitempty"`
	// Effects is what effects do in the fork: reuse_or_refuse, reuse_or_live or live.
	Effects string `json:"effects,omitempty"`
	// Turn is the one that the fork begins in, counted from 1.
	Turn   int    `json:"turn"`
	Step   int    `json:"step,omitempty"`   // superstep of the run's own frame that ended last
	Author string `json:"author,omitempty"` // who made the fork, if somebody has said so
	Reason string `json:"reason,omitempty"`
}

// An Ancestor is a checkpoint from which a run has gone on.
type Ancestor struct {
	Run     string `json:"run"`
	Seq     uint64 `json:"seq"`
	Rewound bool   `json:"rewound,omitempty"` // in the same log; else as a fork
	// At is the number of the [Rewound] entry, in the machine that has come to it.
	At uint64 `json:"at,omitempty"`
}

// A Rewinding is the Data of a [Rewound] entry.
type Rewinding struct {
	To     uint64 `json:"to"`     // of the checkpoint's entry
	Turn   int    `json:"turn"`   // that the run is in from here on
	Left   int    `json:"left"`   // turn that it was in
	Graph  string `json:"graph"`  // name of the graph that it has from here on
	Digest string `json:"digest"` // of that graph
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Machine is where the run stands from here on, as a snapshot would say it.
	Machine json.RawMessage `json:"machine"`
}

// A Trimming is the Data of a [Trimmed] entry. Once it is durable, the store has dropped the
// entries before First, and keeps the machine that they led to as a base. Who trims gives First,
// Base and Pins; the store adds the rest.
type Trimming struct {
	First uint64 `json:"first"` // the oldest entry that stays
	Base  string `json:"base"`  // digest of the machine before it: SHA-256, in hexadecimal
	// Pins are checkpoints before First whose machines stay readable.
	Pins []Pin `json:"pins,omitempty"`
	// Previous is the digest of the append before the one that holds First, in hexadecimal.
	Previous string `json:"previous"`
	Known    Known  `json:"known"`
	Author   string `json:"author,omitempty"` // who trimmed it, if somebody has said so
}

// A Pin names the machine of a checkpoint whose entries are gone.
type Pin struct {
	Seq  uint64 `json:"seq"`  // of the checkpoint's entry
	Base string `json:"base"` // digest of the machine behind it: SHA-256, in hexadecimal
}
