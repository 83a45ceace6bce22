// The agent works on a task with a language model and tools, as a run of a graph that can be killed
// and resumed in the middle of a thought without asking the model anything twice.
//
//	go run ./examples/agent "How much higher is Mont Blanc than Ben Nevis? Note it down."
//
// It needs no network: where the environment names no endpoint, a scripted one on this machine
// speaks for the model (package script). It knows mountains.
//
// # What it does
//
// It thinks, in rounds. In each, the model is told what is known and says what it wants: calls of
// tools, which are made side by side, or the conclusion. A call that lacks an input is completed by
// a person, who is asked; a call that writes is made when a person has approved it. When there is a
// conclusion, or after eight rounds, the answer is written for whom it is for.
//
// # What it knows
//
// [Mind] is all of it: steps with their type, phase and status, facts, assumptions, questions,
// beliefs, goals and a todo list. A tool call is in it from the moment at which it was thought of,
// with the inputs that it still lacks and the alternatives that were rejected, so that a process
// that is killed then, and the model that goes on, lose neither. [Mind.Check] refuses a mind that
// contradicts itself, whoever wrote to it; [Mind.Warnings] tells what is odd and stops nobody.
// Facts come from tools and people alone. What a model says the agent may believe, on the evidence
// of facts.
//
// # The model
//
// Package model asks it. Middleware goes round the call, as functions round a function: log, retry,
// count, keep to a budget. What is spent is in the state and not in the middleware, since a kill
// forgets a counter in a process. Each call is a replayable [dag.Effect] whose input
// is the whole request: a reply that is in the log is never asked for again, and a fork of the run
// asks the model for nothing before the first request that an edit has changed.
//
// # No words that are orders
//
// No prompt here has words that a program looks for. A common design restores a checkpoint when a
// prompt holds a word such as RESUME_FROM and an id, and keeps as a fact what follows FACT: in a
// reply. Then whoever gets text into a prompt commands the program: a page that a search has
// found, a file name, a person's answer.
//
// Here only the command line says that a run goes on. What is known goes to the model as one JSON
// document in which a text can't leave its string. What the model wants comes back as the arguments
// of a call, which are checked. What may be done is in the dispatcher's gates: no text takes away
// the question before a note is written.
//
// # Reading it
//
// state.go is what the agent knows, check.go what may not be, graph.go the order of things;
// think.go and act.go are the nodes, tool.go, calculator.go, search.go and notes.go the tools.
// session.go is one command at work on a store, main.go the command line.
//
// # Flags
//
//	-store DIR      where runs are kept; by default pawl/agent in the user's cache directory
//	-notes DIR      where notes are written; by default notes
//	-run ID         the run: a new one by default; one that exists goes on where it stands, with its
//	                own task and audience
//	-resume         go on with -run, or with the newest run that is not completed
//	-answer TEXT    with -resume: answer what the run asked first; of an approval, that is approve
//	                or reject, and why: 'reject: WHY'
//	-for AUDIENCE   for whom the answer is written
//	-budget N       tokens that the run may spend, until a later command says otherwise
//	-json           print all that the agent knows instead of the answer
//	-v              log the calls of the model
//
// OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL name a model; with one of the first two it is
// asked.
//
// # Exit status
//
//	0  the run is completed
//	1  the run failed, or something was refused
//	2  wrong usage; nothing was printed on standard output
//	3  the run waits for a person, or was cancelled, and can be resumed
package main
