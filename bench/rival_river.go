//go:build rivals && river

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// A riverJob is a run: a job of River with so many resumable steps.
type riverJob struct {
	Run   string `json:"run"`
	Steps int    `json:"steps"`
}

func (riverJob) Kind() string { return "pawl_bench" }

// A riverWorker persists each step with what it wrote, in one transaction.
type riverWorker struct {
	river.WorkerDefaults[riverJob]
	pool  *pgxpool.Pool
	write string             // a statement
	took  chan time.Duration // by the steps of a job
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverJob]) error {
	began := time.Now()
	for i := 1; i <= job.Args.Steps; i++ {
		river.ResumableStep(ctx, "step-"+strconv.Itoa(i), nil, func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, w.write, job.Args.Run, text); err != nil {
					return err
				}
				_, err := river.ResumableSetStepTx[*riverpgxv5.Driver](ctx, tx, job)
				return err
			})
		})
	}
	w.took <- time.Since(began)
	return nil
}

// openRiver starts a client of River on a schema of its own.
func openRiver(s session) (*service, error) {
	url := os.Getenv(postgresVariable)
	if url == "" {
		return nil, fmt.Errorf("%s names no database", postgresVariable)
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	schema := "pawl_bench_river_" + strconv.Itoa(os.Getpid())
	drop := func() error {
		defer pool.Close()
		_, err := pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
		return err
	}
	r, err := startRiver(ctx, pool, schema)
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	return &service{
		note: "River v0.51.1: a resumable step of a job, set in the transaction that writes it; what a job waits " +
			"in its queue is left out; " + postgresNote,
		run:   func(times int) (time.Duration, error) { return r.jobs(ctx, times, s.length) },
		close: func() error { return errors.Join(r.client.Stop(ctx), drop()) },
	}, nil
}

// A riverClient works on the jobs that it inserts.
type riverClient struct {
	client *river.Client[pgx.Tx]
	worker *riverWorker
	ended  <-chan *river.Event
}

func startRiver(ctx context.Context, pool *pgxpool.Pool, schema string) (*riverClient, error) {
	tables := "CREATE SCHEMA " + schema + "; CREATE TABLE " + schema + ".work (run text PRIMARY KEY, title text, count int)"
	if _, err := pool.Exec(ctx, tables); err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: schema})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	r := &riverClient{worker: &riverWorker{
		pool: pool,
		write: "INSERT INTO " + schema + ".work AS w VALUES ($1, $2, 1) " +
			"ON CONFLICT (run) DO UPDATE SET title = excluded.title, count = w.count + 1",
		took: make(chan time.Duration, 1),
	}}
	workers := river.NewWorkers()
	river.AddWorker(workers, r.worker)
	r.client, err = river.NewClient(driver, &river.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Schema:  schema,
		Workers: workers,
	})
	if err != nil {
		return nil, err
	}
	r.ended, _ = r.client.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed)
	return r, r.client.Start(ctx)
}

// jobs inserts a job when the one before it has ended.
func (r *riverClient) jobs(ctx context.Context, times, steps int) (took time.Duration, err error) {
	for range times {
		run := strconv.FormatInt(time.Now().UnixNano(), 36)
		if _, err := r.client.Insert(ctx, riverJob{run, steps}, &river.InsertOpts{MaxAttempts: 1}); err != nil {
			return 0, err
		}
		if e := <-r.ended; e.Kind != river.EventKindJobCompleted {
			return 0, fmt.Errorf("a job ended as %s: %v", e.Job.State, e.Job.Errors)
		}
		took += <-r.worker.took
	}
	return took, nil
}
