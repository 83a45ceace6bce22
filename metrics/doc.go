// Package metrics shows what runs do as Prometheus metrics, on a registry of the caller's.
//
//	m, err := metrics.New(prometheus.DefaultRegisterer)
//	store, err := badgerstore.Open(ctx, dir, badgerstore.Options{Observe: m.ObserveGroup})
//	d, err := dispatcher.New(graph, store, dispatcher.Options{Observe: m.Observe})
//	s, err := supervisor.New(store, supervisor.Options{Observe: m.ObserveSupervisor}, d)
//
// One [Metrics] serves any number of dispatchers, stores and supervisors.
//
// # Names
//
//	name                              type       labels                what
//	pawl_runs_started_total           counter    graph                 runs that were opened, forks apart
//	pawl_runs_resumed_total           counter    graph                 calls that went on with a run
//	pawl_runs_rested_total            counter    graph, status         rests: calls and turns that ended, by what became of the run
//	pawl_runs_in_flight               gauge      graph                 calls that have not ended
//	pawl_superstep_duration_seconds   histogram  graph, node           supersteps of a frame; node holds the frame
//	pawl_node_duration_seconds        histogram  graph, node           attempts of nodes and items that run a function
//	pawl_attempts_total               counter    graph, node, outcome  the same: done, or how they failed
//	pawl_interrupts_total             counter    graph, kind           visits that began to wait
//	pawl_denials_total                counter    graph, node           visits that were denied: by an interceptor, or as an effect was rejected
//	pawl_effects_total                counter    graph, node, outcome  effects that ended
//	pawl_emitted_total                counter    graph, node           values that nodes emitted, as far as they were kept
//	pawl_notices_dropped_total        counter    graph                 emitted values that were not kept
//	pawl_turns_total                  counter    graph                 turns that were begun
//	pawl_settings_changed_total       counter    graph                 changes of the settings of runs
//	pawl_migrations_total             counter    graph                 runs that went on with a changed graph
//	pawl_warnings_total               counter    graph                 calls of OnEnd that went wrong
//	pawl_append_duration_seconds      histogram  graph                 until a run's entries were durable
//	pawl_append_bytes                 histogram  graph                 of the entries of one append, about
//	pawl_group_appends                histogram                        appends that one write of a store joined
//	pawl_group_bytes                  histogram                        keys and values of one write
//	pawl_group_duration_seconds       histogram                        until a write was durable
//	pawl_group_errors_total           counter                          writes that failed, or were refused for want of room
//	pawl_supervisor_working           gauge      graph                 runs at work
//	pawl_supervisor_waiting           gauge      graph                 runs that wait for their turn
//	pawl_supervisor_wait_seconds      histogram  graph                 until a run had its turn
//	pawl_supervisor_joined_total      counter    graph                 submissions of runs that were there already
//	pawl_supervisor_refused_total     counter    graph, reason         submissions that were refused
//	pawl_supervisor_recovered_total   counter    graph, outcome        runs that had been left, and went on or could not
//	pawl_supervisor_ended_total       counter    graph, outcome        runs on which the work is over
//	pawl_supervisor_put_back_total    counter    graph                 runs that wait again, since the store had no room
//	pawl_supervisor_drains_total      counter    outcome               drains that ended
//
// Every label has few values:
//
//   - graph is the name of a graph.
//   - node is a node path, which has no iterations (compose-loop/validate), and "" for the frame of
//     the run itself.
//   - status is how a run came to rest. It is running if the call left the run behind, because its
//     dispatcher drained or its store failed. It is pending if nothing of the run had begun then,
//     such as a run that Create made, which counts as started.
//   - kind is before, after, asked, effect or doubt.
//   - reason is full, draining, or, for a run that is there and can't be joined, busy.
//
// outcome depends on the metric:
//
//   - of an attempt: done, or a dag.FailureKind. in_doubt, like the kind doubt, counts what nobody
//     knows.
//   - of an effect: kept; not_done if it did not happen; lost if it happened and its output can't
//     be kept; resolved if somebody has said what came of it, either way.
//   - of a recovery: rested or failed.
//   - of the work of a supervisor on a run: rested, completed or not; drained; full if the store
//     had no room; failed if the call did otherwise.
//   - of a drain: ended or stuck.
//
// # What is counted
//
// What the log holds is counted when it is durable, so a crash never leaves more counted than
// happened.
//
//   - An attempt counts if it ended done or failed. One that asked, or whose run was cancelled
//     meanwhile, is no attempt.
//   - Effects that are resolved while their run rests count, and so does a migration by an edit.
//   - Cancelling a run at rest runs nothing and is not counted.
//   - A call that goes on with enqueued turns counts a rest for each turn that it ends, beside one
//     of turns_total for each that it begins.
//   - A fork is opened and not run: the first call that runs it counts as one that went on with a
//     run. So does the call that begins a run which Create has made; that run had been counted as
//     started, and its rest as pending.
package metrics
