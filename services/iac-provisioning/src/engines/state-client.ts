import { request as httpRequest } from "node:http";
import { z } from "zod";
import type { StateAccess, StateIdentity } from "./engine.ts";

const REQUEST_TIMEOUT_MS = 30_000;
const identity = z.looseObject({ lineage: z.string(), serial: z.int().nonnegative() });

/** The state backend is out of reach, or answered what it should not; the message is safe to show. */
export class StateRefused extends Error {
  override readonly name = "StateRefused";
  constructor(
    message: string,
    readonly code: "STATE_LOCKED" | "STATE_REFUSED" | "STALE_PLAN" = "STATE_REFUSED",
  ) {
    super(message);
  }
}

/** A state as its engine wrote it. Secret. */
export interface StateDocument {
  readonly identity: StateIdentity;
  readonly text: string;
}

/** Before its first write a state has no lineage, serial 0 and no text. Throws StateRefused. */
export async function readState(access: StateAccess): Promise<StateDocument> {
  const { status, text } = await call(access, "GET");
  if (status === 404) return { identity: { lineage: "", serial: 0 }, text: "" };
  if (status !== 200) throw new StateRefused(`the state backend answered ${status} to reading: ${text}`);
  const { lineage, serial } = identity.parse(JSON.parse(text));
  return { identity: { lineage, serial }, text };
}

/** Writes the next version under a lock that is held. Throws StateRefused. */
export async function writeState(access: StateAccess, lockId: string, text: string): Promise<void> {
  const { status, text: reason } = await call(access, "POST", text, `?ID=${encodeURIComponent(lockId)}`);
  if (status === 409) throw new StateRefused(`the state backend refused the write: ${reason}`, "STALE_PLAN");
  if (status !== 200) throw new StateRefused(`the state backend answered ${status} to writing: ${reason}`);
}

/** Takes the state's lock. Throws StateRefused, with STATE_LOCKED when another run holds it. */
export async function lockState(access: StateAccess, lockId: string, operation: string): Promise<void> {
  const { status, text } = await call(access, "LOCK", lockInfo(lockId, operation));
  if (status === 423) throw new StateRefused(`another run holds the state's lock: ${text}`, "STATE_LOCKED");
  if (status !== 200) throw new StateRefused(`the state backend answered ${status} to locking: ${text}`);
}

export async function unlockState(access: StateAccess, lockId: string, operation: string): Promise<void> {
  const { status, text } = await call(access, "UNLOCK", lockInfo(lockId, operation));
  if (status !== 200) throw new StateRefused(`the state backend answered ${status} to unlocking: ${text}`);
}

function lockInfo(lockId: string, operation: string): string {
  return JSON.stringify({ ID: lockId, Operation: operation, Who: "manifests" });
}

function call(access: StateAccess, method: string, body = "", query = ""): Promise<{ status: number; text: string }> {
  const { address, username, password } = access;
  return new Promise((resolve, reject) => {
    const failed = (error: Error) => reject(new StateRefused(`the state backend is out of reach: ${error.message}`));
    const outgoing = httpRequest(
      `${address}${query}`,
      {
        method,
        auth: `${username}:${password}`,
        agent: false,
        timeout: REQUEST_TIMEOUT_MS,
        headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", failed);
        incoming.on("end", () =>
          resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
        );
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer within ${REQUEST_TIMEOUT_MS} ms`)));
    outgoing.on("error", failed);
    outgoing.end(body);
  });
}
