import type { Answer } from "./answers.ts";
import type { Cast, Holder } from "./cast.ts";
import type { Memory } from "./memory.ts";
import type { ServiceProcess } from "./service-process.ts";

/** An operation with everything named, ready to be called, at any process and as often as one likes. */
export interface Call {
  /** For whoever reads what went wrong. */
  says: string;
  /** Rejects with what the service threw. */
  run(service: ServiceProcess): Promise<Answer>;
  /** What is wrong with an answer, once the whole burst is over. */
  judge(answer: Answer): string[];
  /** Refusals that the service may give. */
  refusals: readonly string[];
  /** How many operations it is: every delivery of an event is one. Else 1. */
  times?: number;
  /** What it may end. */
  ends?: { leaseIds?: readonly string[]; holders?: readonly Holder[] };
}

/** What operations are named by. */
export interface Stage {
  cast: Cast;
  memory: Memory;
  newId: () => string;
}
