import { createHash } from "node:crypto";
import { type DescMessage, type DescMethod, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { InvalidInput, StaleRow } from "@runtime-cloud/service-kit/errors";
import type { SqlTransaction } from "./sql-transaction.ts";
import type { Unit } from "./unit-of-work.ts";

/** A command's method and what it was called with. */
export interface Command<I extends DescMessage, O extends DescMessage> {
  /** From the credential: the key of one tenant is nothing to another. */
  tenantId: string;
  method: DescMethod & { input: I; output: O };
  request: MessageShape<I> & { idempotencyKey: string };
}

/**
 * Does `work` once for the request's idempotency key, in the unit's transaction; a repeat gets the first response again,
 * and a repeat at the same moment waits for it. Without a key it just works.
 *
 * Throws InvalidInput when the key was used for another request. A refusal isn't kept: it rolls back with its unit.
 */
export async function once<I extends DescMessage, O extends DescMessage>(
  { tx }: Unit<SqlTransaction>,
  { tenantId, method, request }: Command<I, O>,
  work: () => Promise<MessageShape<O>>,
): Promise<MessageShape<O>> {
  const key = request.idempotencyKey;
  if (key === "") return work();
  const name = `${method.parent.typeName}/${method.name}`;
  const requestHash = hashOf(method.input, request);

  // The row is taken before the work, so the second of two repeats waits here until the first one's transaction ends.
  const taken = await tx.$executeRaw`
    INSERT INTO idempotency_key (tenant_id, method, key, request_hash, response)
    VALUES (${tenantId}, ${name}, ${key}, ${requestHash}, ''::bytea)
    ON CONFLICT DO NOTHING`;
  if (taken === 0) return firstResponse(tx, { tenantId, name, key, requestHash, output: method.output });

  const response = await work();
  await tx.$executeRaw`
    UPDATE idempotency_key SET response = ${toBinary(method.output, response)}
    WHERE tenant_id = ${tenantId} AND method = ${name} AND key = ${key}`;
  return response;
}

async function firstResponse<O extends DescMessage>(
  tx: SqlTransaction,
  { tenantId, name, key, requestHash, output }: Repeat<O>,
): Promise<MessageShape<O>> {
  const [first] = await tx.$queryRaw<{ requestHash: string; response: Uint8Array }[]>`
    SELECT request_hash AS "requestHash", response FROM idempotency_key
    WHERE tenant_id = ${tenantId} AND method = ${name} AND key = ${key}`;
  if (!first) throw new StaleRow(`the first result of ${name} went away meanwhile`);
  if (first.requestHash !== requestHash) {
    const description = "was used for another request already: send that request again as it was, or use a new key";
    throw new InvalidInput([{ field: "idempotencyKey", description }]);
  }
  return fromBinary(output, first.response);
}

function hashOf<I extends DescMessage>(input: I, request: MessageShape<I>): string {
  return `sha256:${createHash("sha256").update(toBinary(input, request)).digest("hex")}`;
}

interface Repeat<O extends DescMessage> {
  tenantId: string;
  name: string;
  key: string;
  requestHash: string;
  output: O;
}
