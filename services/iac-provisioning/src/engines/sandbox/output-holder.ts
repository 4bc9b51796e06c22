import { spawn, type ChildProcess } from "node:child_process";
import { Socket } from "node:net";

const SHELL = "/bin/sh";
const TOOL_PATH = "/usr/bin:/bin";
/**
 * Waits for the end of its standard input, then reads both streams to their ends. They are this process's, which reads
 * without waiting, so having nothing to read is no end of them.
 */
const SCRIPT = `
drain() { until cat > /dev/null 2>&1; do sleep 0.1; done; }
read -r _
drain <&3 &
drain <&4
wait`;

/**
 * Keeps a command's output open if this process is killed. A CLI that finds nobody at the other end dies of SIGPIPE at
 * its next word, before it has written its state down. As long as this process lives, the holder only waits. Call it
 * before anything reads the output, since that is paused by it. Returns what to call when the command has ended.
 */
export function holdOutput({ stdout, stderr }: ChildProcess): () => void {
  const holder = spawn(SHELL, ["-c", SCRIPT], {
    cwd: "/",
    detached: true,
    env: { PATH: TOOL_PATH },
    stdio: ["pipe", "ignore", "ignore", stdout, stderr],
  });
  const { stdin } = holder;
  holder.once("error", () => undefined).unref();
  stdin?.on("error", () => undefined);
  if (stdin instanceof Socket) stdin.unref();
  // Not by the end of its input: then it would read what this process hasn't read yet.
  return () => void holder.kill("SIGKILL");
}
