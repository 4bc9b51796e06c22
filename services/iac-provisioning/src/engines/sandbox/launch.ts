import type { Socket } from "node:net";
import { identityOf, untilEnded } from "./process-identity.ts";

/** A command that runs. */
export interface Launched {
  /** The leader of a process group and a session of its own. */
  readonly pid: number;
  readonly stdout: Socket;
  readonly stderr: Socket;
  /** What those are called under /proc at the command's end; empty where there is no /proc, or it ended at once. */
  readonly files: readonly string[];
  readonly ended: Promise<End>;
}

export interface End {
  readonly code: number | null;
  /** The signal that ended it, such as SIGKILL. */
  readonly signal: string | null;
  /** Nobody saw how it ended. */
  readonly unseen?: true;
}

/** Of a command whose launcher was killed. */
export const UNSEEN: End = { code: null, signal: null, unseen: true };

/** A command from the request for it to its end. */
export class Launch {
  /** Undefined when nobody knows whether it was started. Rejects when it can't be started. */
  readonly launched: Promise<Launched | undefined>;
  readonly #ended: Promise<End>;
  readonly #outputs: Partial<Record<"stdout" | "stderr", Socket>> = {};
  #identity: string | undefined;
  #launch: (launched: Launched | undefined | Promise<Launched | undefined>) => void = () => undefined;
  #refuse: (reason: Error) => void = () => undefined;
  #end: (end: End) => void = () => undefined;

  constructor() {
    this.#ended = new Promise((resolve) => (this.#end = resolve));
    this.launched = new Promise((resolve, reject) => {
      this.#launch = resolve;
      this.#refuse = reject;
    });
  }

  /** It runs, and this is what it says. */
  take({ pid, files, output }: Running, socket: Socket): void {
    this.#identity ??= identityOf(pid);
    this.#outputs[output] = socket;
    const { stdout, stderr } = this.#outputs;
    if (stdout && stderr) this.#launch({ pid, files, stdout, stderr, ended: this.#ended });
  }

  /** It becomes of it what becomes of another. */
  passOn(other: Promise<Launched | undefined>): void {
    this.#launch(other);
  }

  refuse(reason: Error): void {
    this.#refuse(reason);
  }

  end(end: End): void {
    this.#end(end);
  }

  /** Its launcher is gone: what runs, runs on. */
  lose(): void {
    this.#launch(undefined);
    if (this.#identity !== undefined) void untilEnded(this.#identity).then(() => this.#end(UNSEEN));
  }
}

type Running = Pick<Launched, "pid" | "files"> & { readonly output: "stdout" | "stderr" };
