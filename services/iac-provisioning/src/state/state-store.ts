import type { StateKey } from "./state-key.ts";

/**
 * Where engine states live: the newest versions of each are kept, and one lock a state says which run may write.
 *
 * Content is opaque and already sealed. All writes go through the lock: a write names the lock it was made under, and
 * is refused when that lock is not, or no longer, held.
 */
export interface StateStore {
  /** The current version; undefined before the first write and after a removal. */
  read(key: StateKey): Promise<StateVersion | undefined>;
  /** Accepts only the same lineage with a higher serial. Writing the current version again is accepted as done. */
  write(key: StateKey, version: StateVersion, lock: StateLockClaim): Promise<"written" | WriteRefusal>;
  /** Forgets the current version, keeping those that were written. */
  remove(key: StateKey, lock: StateLockClaim): Promise<"removed" | "not-locked">;
  /** Takes the lock, also from an older epoch of the same run. Undefined when taken, else who holds it. */
  lock(key: StateKey, lock: StateLock): Promise<StateLock | undefined>;
  /** Undefined when unlocked or not locked at all, else who holds it under another claim. */
  unlock(key: StateKey, lock: StateLockClaim): Promise<StateLock | undefined>;
  /** Takes the lock away from a run that is known to be dead. Whether it held it. */
  breakLock(key: StateKey, runId: string): Promise<boolean>;
}

/** `lineage-differs`: another state's history. `serial-not-newer`: someone wrote since. */
export type WriteRefusal = "not-locked" | "lineage-differs" | "serial-not-newer";

export interface StateVersion {
  /** An engine names each state's history once, at its first write. */
  readonly lineage: string;
  /** Counts up with each version. */
  readonly serial: number;
  /** `sha256:<hex>` of the content in clear. */
  readonly digest: string;
  readonly sealed: Uint8Array;
}

export interface StateLockClaim {
  /** Made up by the engine for each lock. */
  readonly id: string;
  readonly runId: string;
  /** The run's executor epoch: a run that lost its executor goes on under a higher one. */
  readonly epoch: number;
}

export interface StateLock extends StateLockClaim {
  /** What the engine says of itself, as JSON text: shown to whoever finds the lock taken. */
  readonly info: string;
}
