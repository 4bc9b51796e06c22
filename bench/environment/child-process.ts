import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A script of this folder in a process of its own, which ends with this one. */
export interface ChildProcess {
  /** What it answers; one question after the other. Rejects when it ends instead. */
  ask(question: string): Promise<unknown>;
  close(): Promise<void>;
}

export function startChild(script: string, env: Readonly<Record<string, string>> = {}): ChildProcess {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), [], {
    execArgv: ["--import", "tsx"],
    env: { ...process.env, ...env },
  });
  const ended = once(child, "exit");
  const noAnswer = ended.then(([code]): never => {
    throw new Error(`${script} ended with ${String(code)}`);
  });
  // Its end is no failure unless somebody waits for an answer.
  noAnswer.catch(() => undefined);
  return {
    ask(question) {
      const answered = new Promise<unknown>((resolve) => child.once("message", resolve));
      child.send(question);
      return Promise.race([answered, noAnswer]);
    },
    async close() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/** For such a script: answers what its parent asks, until the parent lets go. An answer that fails ends the process. */
export function answerParent(answer: (question: string) => Promise<object>): void {
  process.once("disconnect", () => process.exit());
  process.on("message", (question) => {
    void answer(String(question)).then((reply) => process.send?.(reply));
  });
}
