import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** How often it is looked whether a process, which isn't this one's child, has ended. */
const LOOK_EVERY_MS = 100;

let own: string | undefined;

/** This process, told apart from every other that has or had its pid: `<pid>-<start>`, in letters, digits and `-`. */
export function processIdentity(): string {
  own ??= identityOf(process.pid);
  return own;
}

/** The same of any process that runs. */
export function identityOf(pid: number): string {
  return `${pid}-${startOf(pid) ?? 0}`;
}

/** Waits until the process of an identity has ended, whoever's child it is. */
export async function untilEnded(identity: string): Promise<void> {
  while (isRunning(identity)) await wait(LOOK_EVERY_MS);
}

/** Whether the process of an identity still runs. */
export function isRunning(identity: string): boolean {
  const [pid, start] = identity.split("-").map(Number);
  if (pid === undefined || !Number.isInteger(pid) || pid <= 0) return false;
  const now = startOf(pid);
  return now === undefined ? process.platform !== "linux" && answers(pid) : now === start;
}

/** The processor time that a process has used; undefined when there is no such process, or no /proc. */
export function cpuSeconds(pid: number): number | undefined {
  const fields = statOf(pid);
  return fields && (Number(fields[USER_TIME]) + Number(fields[SYSTEM_TIME])) / TICKS_PER_SECOND;
}

/** When it started, in the kernel's ticks since the machine did. */
function startOf(pid: number): number | undefined {
  const fields = statOf(pid);
  return fields && Number(fields[START_TIME]);
}

/** What proc(5) tells of a process after its state; undefined when it has ended. */
function statOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command's name, in parentheses, may hold spaces and parentheses.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? undefined : fields;
  } catch {
    return undefined;
  }
}

function answers(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Of proc(5)'s fields 14, 15 and 22, counted from the one after the state. */
const USER_TIME = 10;
const SYSTEM_TIME = 11;
const START_TIME = 18;
/** The same for every Linux that Node runs on, whatever its kernel's own clock. */
const TICKS_PER_SECOND = 100;
