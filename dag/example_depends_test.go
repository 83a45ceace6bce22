package dag_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// A node says what it has used of the world outside, and for how long that can be trusted. If the
// run is resumed later than that, the node runs again, provided that nothing was built on it yet:
// else the resume is refused, and names the checkpoint to go back to. How long a thing can be
// trusted has to be said.
func ExampleDepends() {
	quote := func(ctx context.Context, l *Letter) error {
		l.Text.Set("A barrel costs 70 today.")
		return dag.Depends(ctx, dag.Dependency{
			Name: "oil price", StaleAfter: 10 * time.Minute, OnStale: dag.Invalidate,
		})
	}
	var l Letter
	fmt.Println(quote(context.Background(), &l)) // outside a run it is only checked
	fmt.Println(dag.Depends(context.Background(), dag.Dependency{Name: "oil price"}))
	// Output:
	// <nil>
	// dag: Depends: the dependency "oil price" has a StaleAfter of 0s: say how long it can be trusted
}
