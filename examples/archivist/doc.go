// The archivist answers questions about books from a catalogue, as a run of a graph that can be
// cancelled, killed and resumed, inside its loop, without doing finished work again.
//
//	go run ./examples/archivist "What's a book about a labyrinth?"
//
// It quotes and ranks what its catalogue says. It is no language model; it asks one, if the
// environment names one, and believes nothing that the catalogue does not say.
//
// # What it can be asked
//
// Books on a subject ("a book about a labyrinth"), one book ("What is Dune about?"), an author's
// books, books like another ("more like that" is like the last answer), the best books, and what it
// was asked before. It refuses what has nothing to do with books, and what could do harm. Where it
// has little to go by, the answer says so. Its ratings are reckoned from the catalogue, not from
// readers; see [catalogue.Ratings].
//
// # Reading it
//
// state.go is what one question knows and graph.go in which order it learns it. Each node is a
// function of a context and an *Inquiry, or of the *Quest that a search for books is, in the file
// of its subject: recall.go, intent.go, plan.go, scouts.go, rank.go, composer.go, answer.go;
// prompts.go is what a language model is asked. session.go runs the graph over a store in a
// directory, conversation.go is what a command does with a run, and the files beside them are the
// command line.
//
// The nouns of pawl that nodes and graph need: [dag.Graph], [dag.Edge], [dag.Policy] and
// [dag.Failure]; [state.Value], [state.List] and [state.Sum]. Those that running them needs:
// [dispatcher.Dispatcher], [dispatcher.Options], [dispatcher.RunOption], [dispatcher.Result] and
// [dispatcher.Rest]. The command line also uses [dispatcher.Event], [dispatcher.Listen],
// [dispatcher.Item], [dispatcher.Interrupt], [dispatcher.Boundary], [dispatcher.Checkpoint],
// [dispatcher.ForkOptions], [dispatcher.StateDiff], [dispatcher.Blame], [checkpoint.Store] and
// [checkpoint.Filter].
//
// # Flags
//
//	-store DIR        where runs are kept; by default pawl/archivist in the user's cache directory
//	-run ID           the run: a new one by default; one that exists goes on where it stands
//	-resume           go on with -run, or with the newest run that is not completed
//	-answer TEXT      with -resume: answer what the run asked; of -approve, that is
//	                  approve, reject, or edit: and the text that goes out instead
//	-json             print one JSON object instead of the answer
//	-slow D           make every scout and every draft take D longer
//	-cancel-after D   cancel the run after D
//	-cancel-at PATH   cancel the run just before a visit, such as compose-loop/2/validate
//	-deadline D       let the run time out after D
//	-history          list the checkpoints of -run, or of the newest run
//	-fork CHECKPOINT  begin a new run at a checkpoint of -run, or of the newest run, such as 3, 0 or
//	                  RUN@SEQ as -history prints it; with another question, or the same
//	-diff A B         tell what differs between two checkpoints of -run, or of the newest run
//	-blame CELL       tell which visits wrote a cell of -run, or of the newest run, such as Answer
//	-record           print what somebody else has to know to go on with -run, or the newest run: its
//	                  continuation record, in JSON, kept as a version and verified
//	-graph FORMAT     print the graph as mermaid, dot or json
//	-corpus FILE      answer from another catalogue, one book in JSON per line
//	-approve          ask a person before the answer goes out; at a terminal it is asked there,
//	                  otherwise the run waits, with status 3, for -resume -answer
//	-books N          name at most N books, from 1 to 50
//	-model NAME       the language model, if the environment names an endpoint
//	-online           ask Open Library too, over the network
//	-metrics ADDR     serve Prometheus metrics on ADDR while the run is at work
//
// -approve, -books and -model hold for the run until a later command for it says otherwise.
//
// # Environment
//
//	OPENAI_BASE_URL      an endpoint that speaks OpenAI's chat completions
//	OPENAI_API_KEY       its key; kept out of runs, and of all that is printed
//	OPENAI_MODEL         the model
//	OPENLIBRARY_BASE_URL where -online looks in place of openlibrary.org
//
// With one of the first two, that model tells what a question wants and writes the drafts. Where it
// fails or invents, words and rules do, as they do without one.
//
// # Exit status
//
//	0  the run is completed, or a listing or drawing was printed
//	1  the run failed, or the library or the store refused
//	2  wrong usage; nothing was printed on standard output
//	3  the run was interrupted, cancelled or timed out, and can be resumed
package main
