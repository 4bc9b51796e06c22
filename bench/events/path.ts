import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import type { Ledger } from "./ledger.ts";

export type PathName =
  "runtime_cloud" | "bullmq" | "graphile_worker" | "graphile_worker_tuned" | "pg_boss" | "pg_boss_tuned";

/** A way for events to get from whoever announces them to a handler. */
export interface Path {
  readonly name: PathName;
  /** Its version and the settings that it is measured with. */
  readonly about: string;
  /** Where its handler writes down what it gets. */
  readonly ledger: Ledger;
  /** Hands the events over; answers from when (`performance.now()`) their way counts. */
  send(events: readonly CloudEvent[]): Promise<number>;
  /** Throws unless just these events were handled since the ledger was cleared, and nothing of them is left. */
  check(eventIds: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Opens paths, one after the other, and closes them after the work. */
export async function withPaths<Result>(
  openers: readonly (() => Path | Promise<Path>)[],
  work: (paths: readonly Path[]) => Promise<Result>,
): Promise<Result> {
  const paths: Path[] = [];
  try {
    for (const open of openers) paths.push(await open());
    return await work(paths);
  } finally {
    for (const path of paths.reverse()) await path.close();
  }
}
