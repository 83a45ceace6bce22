//go:build rivals && temporal

package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	temporalworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
)

// temporalRun is a run: a workflow with so many activities, one after the other. It returns
// how many there were.
func temporalRun(ctx workflow.Context, steps int) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var p plain
	for range steps {
		if err := workflow.ExecuteActivity(ctx, temporalWrite, p.Count).Get(ctx, &p); err != nil {
			return 0, err
		}
	}
	return p.Count, nil
}

// temporalWrite is write for Temporal, whose history keeps what activities are given and return.
func temporalWrite(ctx context.Context, count int) (plain, error) {
	p := plain{Title: text, Count: count}
	return p, plainStep(ctx, &p)
}

// temporalVariable names the environment variable with the address of a Temporal server.
const temporalVariable = "TEMPORAL_ADDRESS"

// openTemporal starts a worker on a task queue of its own.
func openTemporal(s session) (*service, error) {
	address := os.Getenv(temporalVariable)
	if address == "" {
		return nil, errors.New(temporalVariable + " names no server")
	}
	options := client.Options{HostPort: address, Logger: silent{}}
	if err := makeNamespace(options); err != nil {
		return nil, err
	}
	c, err := client.Dial(options)
	if err != nil {
		return nil, err
	}
	queue := "pawl-bench-" + strconv.Itoa(os.Getpid())
	w := temporalworker.New(c, queue, temporalworker.Options{})
	w.RegisterWorkflow(temporalRun)
	w.RegisterActivity(temporalWrite)
	if err := w.Start(); err != nil {
		c.Close()
		return nil, err
	}
	return &service{
		note: "Temporal, Go SDK v1.50.0: an activity of a workflow; one server for all windows; what it acknowledges survives the " +
			"process, and a power cut if the server's database does",
		run: watch(func(times int) error {
			for range times {
				if err := temporalRuns(c, queue, s.length); err != nil {
					return err
				}
			}
			return nil
		}),
		close: func() error {
			w.Stop()
			c.Close()
			return nil
		},
	}, nil
}

// makeNamespace registers the default namespace where there is none, as in a server that has just
// been given its database: that of the developers' command has it.
func makeNamespace(options client.Options) error {
	c, err := client.NewNamespaceClient(options)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = c.Register(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        client.DefaultNamespace,
		WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if errors.As(err, &exists) {
		return nil
	}
	if err != nil {
		return err
	}
	for { // The server's services hear of it within some seconds.
		_, err := c.Describe(ctx, client.DefaultNamespace)
		var gone *serviceerror.NamespaceNotFound
		if !errors.As(err, &gone) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func temporalRuns(c client.Client, queue string, steps int) error {
	ctx := context.Background()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue}, temporalRun, steps)
	if err != nil {
		return err
	}
	var count int
	err = run.Get(ctx, &count)
	return counted(plain{Count: count}, err, steps)
}

// silent keeps the SDK's own news off the terminal.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
