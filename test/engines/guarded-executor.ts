/**
 * An executor in miniature: runs one shell command as an engine is run, prints what it prints, and goes on until it is
 * killed or the command ends. `holds` as the third argument: as an apply is run.
 */
import { run } from "@runtime-cloud/iac-provisioning/engines/sandbox/subprocess";

const [script = "", directory = "/", manner] = process.argv.slice(2);
const never = new AbortController().signal;
const command = {
  binary: "/bin/sh",
  args: ["-c", script],
  directory,
  environment: { PATH: "/usr/bin:/bin" },
  signals: { interrupt: never, kill: never },
  work: "guarded",
  outlivesService: manner === "holds",
};
for await (const line of run(command, (output) => [output.line])) process.stdout.write(`${line}\n`);
