import { rm } from "node:fs/promises";
import path from "node:path";
import type { Diagnostic } from "../engine-event.ts";
import { EngineStopped } from "../engine-stopped.ts";
import type { OutputLine } from "../sandbox/line-splitter.ts";
import { readWorkspaceFile } from "../sandbox/workspace-file.ts";

/** Where the CLI leaves, in its directory, the state that it could not write to the backend. */
const UNWRITTEN_STATE_FILE = "errored.tfstate";

/** With these the CLI says that its bookkeeping failed, not that a change did. */
const UNWRITTEN = /^Failed to (?:save state|persist state|create local state file|serialize state)/;
const UNLOCKED = /^Error releasing the state lock/;
const DUMP = '"Emergency state dump"';
/** The message comes before the state in a line. */
const DUMP_WITHIN = 200;

export function saysUnwritten({ summary }: Diagnostic): boolean {
  return UNWRITTEN.test(summary);
}

export function isBookkeeping(diagnostic: Diagnostic): boolean {
  return saysUnwritten(diagnostic) || UNLOCKED.test(diagnostic.summary);
}

/** The state that the CLI left behind; undefined when there is none, or something else in its place. Secret. */
export async function readUnwritten(directory: string): Promise<string | undefined> {
  try {
    return (await readWorkspaceFile(path.join(directory, UNWRITTEN_STATE_FILE)))?.toString("utf8");
  } catch (error) {
    if (error instanceof EngineStopped) return undefined;
    throw error;
  }
}

export function removeUnwritten(directory: string): Promise<void> {
  return rm(path.join(directory, UNWRITTEN_STATE_FILE), { recursive: true, force: true });
}

/** Where the CLI can't even write the file, it prints the state: one line of JSON, of any length. Secret. */
export interface DumpListener {
  readonly hear: (line: OutputLine) => void;
  state(): string | undefined;
}

export function listenForDump(): DumpListener {
  let dump: string | undefined;
  return {
    hear: ({ line }) => {
      if (line.startsWith("{") && line.slice(0, DUMP_WITHIN).includes(DUMP)) dump = dumpedState(line);
    },
    state: () => dump,
  };
}

/** Cut out as it is: to read it would round its large numbers. Its keys are in the order of the alphabet. */
function dumpedState(line: string): string | undefined {
  const from = line.indexOf('"state":');
  const to = line.lastIndexOf(',"type":"log"');
  return from >= 0 && to > from ? line.slice(from + '"state":'.length, to) : undefined;
}
