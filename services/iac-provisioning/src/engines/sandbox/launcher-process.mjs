// Starts engines for a service, and is their parent: see launcher.ts. Plain JavaScript, so that it starts at once and
// stays small. Arguments: a directory for its socket, and the seconds that engines have to end when the service is gone.
// Standard input closes when the service ends, however it ends.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readlinkSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";

const [temporary = "/tmp", graceSeconds = "0"] = process.argv.slice(2);
const SECOND = 1_000;

const directory = mkdtempSync(join(temporary, "runtime-cloud-launcher-"));
const address = join(directory, "outputs");
process.once("exit", () => rmSync(directory, { recursive: true, force: true }));

/** Whoever connects is read by somebody else. */
const gate = createServer({ pauseOnConnect: true }).listen(address);
await once(gate, "listening");

/** The engines that run, each with what it holds open. */
const engines = new Map();
let lastPair = Promise.resolve();

let isAlone = false;
process.on("message", (request) => void start(request));
// No `disconnect` is told while a handle is on its way.
process.stdin.resume().once("close", outlive);
tell({ directory });

async function start({ id, file, args, holds, ...options }) {
  const outputs = [];
  try {
    for (const name of ["stdout", "stderr"]) outputs.push({ name, ...(await pair()) });
    if (isAlone) return;
    const stdio = ["ignore", ...outputs.map(({ writing }) => writing)];
    const engine = spawn(file, args, { ...options, detached: true, stdio });
    const files = filesOf(engine);
    for (const { writing } of outputs) writing.destroy();
    if (engine.pid === undefined) throw (await once(engine, "error"))[0];
    handOn(engine, { id, files, outputs, holds });
  } catch ({ code, message }) {
    for (const { reading, writing } of outputs) for (const end of [reading, writing]) end.destroy();
    tell({ id, problem: message, errorCode: code });
  }
}

function handOn(engine, { id, files, outputs, holds }) {
  const { pid } = engine;
  const held = holds ? outputs.map(({ reading }) => reading) : [];
  engines.set(engine, held);
  const handedOn = outputs.map(({ name, reading }) => tell({ id, pid, files, output: name }, reading, holds));
  engine.once("exit", (code, signal) => {
    engines.delete(engine);
    tell({ id, code, signal });
    leaveIfDone();
    // One that isn't on its way yet couldn't be handed on any more.
    Promise.all(handedOn).then(() => {
      for (const reading of held) reading.destroy();
    });
  });
}

/** What its outputs are called under /proc, by which whoever else holds them is found. */
function filesOf({ pid }) {
  try {
    return [1, 2].map((descriptor) => readlinkSync(`/proc/${pid}/fd/${descriptor}`));
  } catch {
    return [];
  }
}

/** The two ends of an output. They are made one after the other, so that the next to connect is who was asked to. */
function pair() {
  const made = lastPair.then(async () => {
    const writing = connect(address);
    const [[reading]] = await Promise.all([once(gate, "connection"), once(writing, "connect")]);
    reading.on("error", () => undefined);
    return { reading, writing };
  });
  lastPair = made.catch(() => undefined);
  return made;
}

/** Resolves when it is on its way. What a service that is gone doesn't hear is nobody's. */
function tell(message, handle, keepOpen = false) {
  if (isAlone) return undefined;
  return new Promise((resolve) => process.send(message, handle, { keepOpen }, resolve));
}

/**
 * The service is gone. Whoever has to write its state still finds somebody who reads what it says; its guardian ends it,
 * and if that is gone too, this does.
 */
function outlive() {
  isAlone = true;
  for (const held of engines.values()) for (const reading of held) reading.resume();
  setTimeout(
    () => {
      for (const engine of engines.keys()) killGroup(engine.pid);
    },
    Number(graceSeconds) * SECOND,
  ).unref();
  leaveIfDone();
}

function leaveIfDone() {
  if (isAlone && engines.size === 0) process.exit();
}

function killGroup(leader) {
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // No process of the group is left.
  }
}
