// Runs graphs of LangGraph.js beside those of pawl. The first line that it prints says what is
// there. Then it reads a request a line, does so many times what that asks for, and answers
// with a line: how many nanoseconds what counts of it took, or why it could not be done.
import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Annotation, Command, END, MemorySaver, START, StateGraph, interrupt } from "@langchain/langgraph";

const [directory, postgres] = process.argv.slice(2);
// Who started this process may end first, by a Ctrl-C that both are sent: this one ends with its input, and clears away.
process.on("SIGINT", () => {});
process.stdout.on("error", () => {});
setMaxListeners(0); // a fan-out of LangGraph's own has more than Node warns of
const schema = `pawl_bench_${process.pid}`;

// The five cells of the state that the graphs of pawl have.
const State = Annotation.Root({
  title: Annotation(),
  notes: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
  seen: Annotation({ reducer: (a, b) => ({ ...a, ...b }), default: () => ({}) }),
  score: Annotation(),
  count: Annotation({ reducer: (a, b) => a + b, default: () => 0 }),
});

const step = () => ({ count: 1 });

let asked; // when the run that is at work asked first
const ask = () => {
  asked ??= process.hrtime.bigint();
  if (interrupt("Shall I go on?") !== true) throw new Error("the answer should be yes");
  return { count: 1 };
};

function chain(nodes, body) {
  const graph = new StateGraph(State);
  let last = START;
  for (let i = 1; i <= nodes; i++) {
    graph.addNode(`node-${i}`, body(i)).addEdge(last, `node-${i}`);
    last = `node-${i}`;
  }
  return graph.addEdge(last, END);
}

function fan(width) {
  const graph = new StateGraph(State).addNode("first", step).addNode("last", step);
  const sides = Array.from({ length: width }, (_, i) => `side-${i + 1}`);
  for (const side of sides) graph.addNode(side, step).addEdge("first", side);
  return graph.addEdge(START, "first").addEdge(sides, "last").addEdge("last", END);
}

const graphs = {
  chain: ({ nodes }) => chain(nodes, () => step),
  write: ({ nodes, text }) => chain(nodes, () => () => ({ title: text, count: 1 })),
  question: ({ nodes }) => chain(nodes, (i) => (i === nodes - 1 ? ask : step)),
  fan: ({ nodes }) => fan(nodes),
};

// What keeps checkpoints, by name. Each that is there is made once.
const savers = { none: undefined, memory: new MemorySaver() };
const absent = {}; // why the others are not

async function sqlite() {
  const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite");
  savers.sqlite = SqliteSaver.fromConnString(join(directory, "langgraph.db"));
  savers["sqlite-full"] = SqliteSaver.fromConnString(join(directory, "langgraph-full.db"));
  savers["sqlite-full"].db.pragma("synchronous = FULL");
}

let pool; // where there may be a schema to drop in the end
async function postgresql() {
  if (!postgres) throw new Error("BENCH_POSTGRES names no database");
  const { default: pg } = await import("pg");
  const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres");
  pool = new pg.Pool({ connectionString: postgres });
  const saver = new PostgresSaver(pool, undefined, { schema });
  await saver.setup(); // it may fail when it has made the schema
  savers.postgres = saver;
}

async function absentIfNot(name, open) {
  try {
    await open();
  } catch (e) {
    absent[name] = String(e.message || e.code || e);
  }
}

const compiled = new Map();
function compile(request) {
  const key = `${request.graph}/${request.nodes}/${request.saver}`;
  if (!compiled.has(key)) {
    if (!(request.saver in savers)) throw new Error(`no saver ${request.saver}`);
    compiled.set(key, graphs[request.graph](request).compile({ checkpointer: savers[request.saver] }));
  }
  return compiled.get(key);
}

let made = 0; // runs
async function run(graph, request) {
  const saver = savers[request.saver];
  const thread = `run-${++made}`;
  const config = { recursionLimit: request.nodes + 10 };
  if (saver) Object.assign(config, { configurable: { thread_id: thread }, durability: "sync" });
  asked = undefined;
  let began = process.hrtime.bigint();
  let result = await graph.invoke({ count: 0 }, config);
  if (request.graph === "question") {
    if (!result.__interrupt__?.length) throw new Error("a graph that asks should be interrupted");
    began = asked;
    result = await graph.invoke(new Command({ resume: true }), config);
  }
  const took = process.hrtime.bigint() - began;
  const want = request.nodes + (request.graph === "fan" ? 2 : 0);
  if (result.count !== want) throw new Error(`a graph should count to ${want}, not to ${result.count}`);
  if (saver instanceof MemorySaver) await saver.deleteThread(thread);
  return took;
}

// The work that is killed: stages of so many visits side by side, each of which calls begin.
function workload({ stages, sides }, begin) {
  const graph = new StateGraph(State);
  let last = START;
  for (let i = 0; i < stages; i++) {
    const next = Array.from({ length: sides }, (_, k) => `stage-${i + 1}-${k + 1}`);
    next.forEach((name, k) => graph.addNode(name, () => begin(i * sides + k)).addEdge(last, name));
    last = next;
  }
  for (const name of last) graph.addEdge(name, END);
  return graph;
}

const never = () => new Promise(() => {});

// Of a saver: one that does nothing any more when its life is over. What was under way by then is
// stored, and settled waits for it.
function mortal(saver, over) {
  const underWay = [];
  const one = Object.create(saver);
  for (const write of ["put", "putWrites"]) {
    one[write] = (...args) => {
      if (over()) return never();
      const done = saver[write](...args);
      underWay.push(done);
      return done;
    };
  }
  return [one, () => Promise.all(underWay)];
}

let work; // the number of the work that is done, and what is saved of it

// live goes on with a work until it is done, or a little behind its end-th visit, which and those behind it
// take longer: then that life is over, of which nothing is left but what the saver has. It answers with the
// visits that began.
async function live(request) {
  if (work?.number !== request.work) work = { number: request.work, saver: new MemorySaver() };
  const began = [];
  let ended = false;
  const over = () => ended;
  let die;
  const death = new Promise((resolve) => (die = () => resolve((ended = true))));
  const begin = (visit) => {
    if (!ended) began.push(visit);
    if (began.length < request.end) return { count: 1 };
    if (began.length === request.end) setTimeout(die, request.slow);
    return never();
  };
  const [checkpointer, settled] = mortal(work.saver, over);
  const graph = workload(request, begin).compile({ checkpointer });
  const config = { configurable: { thread_id: "work" }, durability: "sync", recursionLimit: request.stages + 10 };
  const input = (await work.saver.getTuple(config)) ? null : { count: 0 };
  const result = await Promise.race([graph.invoke(input, config), death]);
  await settled();
  const want = request.stages * request.sides;
  if (!over() && result.count !== want) throw new Error(`the work should count to ${want}, not to ${result.count}`);
  return { began, done: !over() };
}

async function answer(line) {
  const request = JSON.parse(line);
  if (request.live) return live(request.live);
  const graph = compile(request);
  let took = 0n;
  for (let i = 0; i < request.times; i++) took += await run(graph, request);
  return { took: Number(took) };
}

const print = (value) => process.stdout.write(JSON.stringify(value) + "\n");

const version = JSON.parse(
  readFileSync(new URL("node_modules/@langchain/langgraph/package.json", import.meta.url)),
).version;
await absentIfNot("sqlite", sqlite);
await absentIfNot("postgres", postgresql);
print({ node: process.version, version, absent });

for await (const line of createInterface({ input: process.stdin })) {
  try {
    print(await answer(line));
  } catch (e) {
    print({ error: String(e.stack ?? e) });
  }
}
if (pool) {
  try {
    await pool.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
  } catch (e) {
    if (savers.postgres) throw e; // else there may be no database, as absent says
  }
  await pool.end();
}
