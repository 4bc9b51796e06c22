import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { z } from "zod";
import { BodyTooLarge, readBody } from "./request-body.ts";
import type { SecretBox } from "./secret-box.ts";
import type { StateCredentials, StateGrant } from "./state-credentials.ts";
import type { StateLock, StateLockClaim, StateStore, WriteRefusal } from "./state-store.ts";
import { MAX_LINEAGE_LENGTH, MAX_STATE_BYTES, openState, sealState, stateHead } from "./state-version.ts";

/** Where the backend answers. Which state is meant comes from the credential alone. */
export const STATE_BACKEND_PATH = "/engine-state";

const MAX_LOCK_BYTES = 16 * 1024;

const lockHead = z.object({ ID: z.string().min(1).max(MAX_LINEAGE_LENGTH) });

export interface StateBackendContext {
  readonly store: StateStore;
  readonly credentials: StateCredentials;
  readonly box: SecretBox;
  /** Told of what the engine only hears as status 500. */
  readonly onError: (error: unknown) => void;
}

/**
 * The `http` state backend that engines speak to: GET, POST, DELETE, LOCK and UNLOCK with basic auth, as Terraform and
 * OpenTofu expect it. 401 without a valid credential, 403 for writing with a read-only one, 423 with the holder's lock
 * when another run holds it, 409 for a write that is not this state's next version or not made under the lock, 413 for a
 * state that is larger than one may be.
 */
export function stateBackend(context: StateBackendContext): RequestListener {
  return (request, response) => {
    answer(context, request).then(
      (reply) => send(response, reply),
      (error: unknown) => {
        if (error instanceof BodyTooLarge) return send(response, { status: 413, body: error.message });
        context.onError(error);
        send(response, { status: 500, body: "internal error" });
      },
    );
  };
}

async function answer(context: StateBackendContext, request: IncomingMessage): Promise<Reply> {
  const url = new URL(request.url ?? "/", "http://state");
  if (url.pathname !== STATE_BACKEND_PATH) return { status: 404, body: "no such path" };

  const { username, password } = basicAuth(request.headers.authorization);
  const grant = await context.credentials.verify(username, password);
  if (!grant) return { status: 401, body: "the credential is unknown, expired or replaced" };
  if (request.method === "GET") return readState(context, grant);
  if (grant.access !== "write") return { status: 403, body: "the credential may only read" };

  const lockId = url.searchParams.get("ID") ?? "";
  switch (request.method) {
    case "POST":
      return writeState(context, grant, lockId, await readBody(request, MAX_STATE_BYTES));
    case "DELETE":
      return removeState(context, grant, lockId);
    case "LOCK":
      return lockState(context, grant, await readBody(request, MAX_LOCK_BYTES));
    case "UNLOCK":
      return unlockState(context, grant, await readBody(request, MAX_LOCK_BYTES));
    default:
      return { status: 405, body: "use GET, POST, DELETE, LOCK or UNLOCK" };
  }
}

async function readState({ store, box }: StateBackendContext, { key }: StateGrant): Promise<Reply> {
  const current = await store.read(key);
  if (!current) return { status: 404, body: "" };
  return { status: 200, body: openState(box, key, current) };
}

async function writeState(
  context: StateBackendContext,
  grant: StateGrant,
  lockId: string,
  body: Buffer,
): Promise<Reply> {
  const head = stateHead(body);
  if (!head) return { status: 400, body: "a state is JSON with a lineage and a serial" };

  const version = sealState(context.box, grant.key, body, head);
  const result = await context.store.write(grant.key, version, claim(grant, lockId));
  return result === "written" ? { status: 200, body: "" } : { status: 409, body: WRITE_REFUSALS[result] };
}

async function removeState({ store }: StateBackendContext, grant: StateGrant, lockId: string): Promise<Reply> {
  const result = await store.remove(grant.key, claim(grant, lockId));
  return result === "removed" ? { status: 200, body: "" } : { status: 409, body: WRITE_REFUSALS[result] };
}

async function lockState({ store }: StateBackendContext, grant: StateGrant, body: Buffer): Promise<Reply> {
  const head = lockHead.safeParse(parseJson(body));
  if (!head.success) return { status: 400, body: "a lock is JSON with an ID" };
  return lockReply(await store.lock(grant.key, { ...claim(grant, head.data.ID), info: body.toString("utf8") }));
}

async function unlockState({ store }: StateBackendContext, grant: StateGrant, body: Buffer): Promise<Reply> {
  const head = lockHead.safeParse(parseJson(body));
  if (!head.success) return { status: 400, body: "an unlock is JSON with the lock's ID" };
  return lockReply(await store.unlock(grant.key, claim(grant, head.data.ID)));
}

function lockReply(holder: StateLock | undefined): Reply {
  return holder ? { status: 423, body: holder.info } : { status: 200, body: "" };
}

function claim({ holderId, epoch }: StateGrant, id: string): StateLockClaim {
  return { id, runId: holderId, epoch };
}

function basicAuth(header = ""): { username: string; password: string } {
  const [scheme = "", encoded = ""] = header.split(" ");
  const decoded = scheme.toLowerCase() === "basic" ? Buffer.from(encoded, "base64").toString("utf8") : "";
  const colon = decoded.indexOf(":");
  return { username: decoded.slice(0, Math.max(colon, 0)), password: decoded.slice(colon + 1) };
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, { status, body }: Reply): void {
  const challenge = status === 401 ? { "www-authenticate": 'Basic realm="engine-state"' } : {};
  response.writeHead(status, { "content-length": Buffer.byteLength(body), ...challenge }).end(body);
}

const WRITE_REFUSALS: Readonly<Record<WriteRefusal, string>> = {
  "not-locked": "the state's lock is not held by this run under this lock id",
  "lineage-differs": "the state has another lineage",
  "serial-not-newer": "the state has this serial or a newer one",
};

interface Reply {
  readonly status: number;
  readonly body: string | Buffer;
}
