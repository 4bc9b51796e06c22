import { createHash } from "node:crypto";
import type { StateKey } from "./state-key.ts";

/**
 * Who may reach which state: each run gets a password of its own, which opens only its state and only until the run
 * ends or its next executor takes over. Only hashes are kept.
 */
export interface StateCredentials {
  /**
   * Issues the password for a holder, which voids the one before. Undefined when a newer epoch was granted already:
   * whoever asks has lost the run.
   */
  grant(grant: StateGrant): Promise<string | undefined>;
  /** What the password opens; undefined when it opens nothing. */
  verify(holderId: string, password: string): Promise<StateGrant | undefined>;
  revoke(holderId: string): Promise<void>;
}

export interface StateGrant {
  /** The run's id, or the observation's: the user name at the state backend. */
  readonly holderId: string;
  readonly key: StateKey;
  readonly epoch: number;
  /** An observation reads; a run writes. */
  readonly access: "read" | "write";
}

/** Passwords are random and long, so one plain hash is enough to keep them. */
export function hashPassword(password: string): string {
  return createHash("sha256").update(password).digest("hex");
}
