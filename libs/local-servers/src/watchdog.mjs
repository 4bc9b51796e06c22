// Holds one server process and stops it when our standard input ends: on purpose, or because the process that
// started us is gone, however it ended. Plain JavaScript, so that it starts at once.
//
// Argument: JSON { command, args, logFile, stopSignal, killSignal, graceMs, uid?, gid?, scratch? }. Prints the server's
// pid. `scratch` is a folder that we remove after a stop; after a crash it's left for the starter to look into.
import { spawn } from "node:child_process";
import { openSync, rmSync } from "node:fs";

const { command, args, logFile, stopSignal, killSignal, graceMs, uid, gid, scratch } = JSON.parse(process.argv[2]);

// The starter's terminal and process group are not ours to follow; only its end of the pipe is.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop);

const log = openSync(logFile, "a", 0o600);
const server = spawn(command, args, { stdio: ["ignore", log, log], uid, gid, cwd: "/" });
server.on("error", (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
let stopping = false;
server.on("exit", (code) => {
  if (stopping && scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
  process.exit(code ?? 1);
});
server.on("spawn", () => process.stdout.write(`${server.pid}\n`));

process.stdin.on("end", stop).on("error", stop).resume();

function stop() {
  stopping = true;
  server.kill(stopSignal);
  setTimeout(() => server.kill(killSignal), graceMs).unref();
}
