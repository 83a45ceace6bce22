package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// Two runs begin at one machine, which the store keeps once, as long as one of them is there. A
// dispatcher makes the machine and the entries; here they are written by hand.
func ExampleStore_fork() {
	ctx := context.Background()
	var store memory.Store
	machine := []byte(`{"state":{"query":"labyrinth"}}`)
	digest := checkpoint.BaseDigest(machine)
	opening, err := json.Marshal(checkpoint.Opening{
		Graph: "archivist", Origin: &checkpoint.Origin{Run: "inquiry-42", Seq: 17, Base: digest},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	entries := []checkpoint.Entry{{Kind: checkpoint.Opened, Data: opening}}
	err = store.Fork(ctx, checkpoint.Fork{Base: machine, Runs: []checkpoint.ForkedRun{
		{Run: "what-if-1", Entries: entries}, {Run: "what-if-2", Entries: entries},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := store.Delete(ctx, "what-if-1"); err != nil {
		fmt.Println(err)
		return
	}
	info, err := store.Stat(ctx, "what-if-2")
	if err != nil {
		fmt.Println(err)
		return
	}
	base, err := store.Base(ctx, info.Run, info.Base)
	fmt.Printf("%s, from %s@%d: %s, %v\n", info.Run, info.Origin.Run, info.Origin.Seq, base, err)
	_, err = store.Base(ctx, "what-if-1", digest)
	fmt.Println(errors.Is(err, checkpoint.ErrNotFound))
	// Output:
	// what-if-2, from inquiry-42@17: {"state":{"query":"labyrinth"}}, <nil>
	// true
}

// Verify tells what is wrong with a stored run; of one that is whole it has nothing to say.
func ExampleVerify() {
	ctx := context.Background()
	var store memory.Store
	lease, err := store.Acquire(ctx, "inquiry-42", "owner")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = store.Append(ctx, lease, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Done, Path: "classify"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	findings := 0
	for finding, err := range checkpoint.Verify(ctx, &store, "inquiry-42") {
		if err != nil {
			fmt.Println("can't be verified:", err)
			return
		}
		findings++
		fmt.Println(finding)
	}
	fmt.Println(findings, "findings")
	// Output:
	// 0 findings
}
