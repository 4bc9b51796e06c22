import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";
import { systemClock } from "./clock.ts";

/** Makes the id of a new row, event or command. */
export type NewId = () => string;

/**
 * Time-ordered UUIDs (RFC 9562), so that primary keys grow at the right edge of their index; those of one millisecond
 * count up.
 */
export const uuidv7: NewId = () => {
  const random = nextRandom();
  const msecs = Math.max(last.msecs, systemClock.now().getTime());
  const seq = msecs > last.msecs ? firstOf(random) : last.seq + 1;
  last = seq > MAX_SEQUENCE ? { msecs: msecs + 1, seq: 0 } : { msecs, seq };
  return v7({ random, ...last });
};

let last = { msecs: 0, seq: 0 };
const MAX_SEQUENCE = 0xffffffff;

/** Half of the sequence is left to count up in. */
function firstOf(random: Uint8Array): number {
  return new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1;
}

/** Bytes that one UUID takes. */
const TAKEN = 16;
/** Random bytes are asked for in bulk: asking is what they cost. */
const pool = new Uint8Array(256 * TAKEN);
let used = pool.length;

function nextRandom(): Uint8Array {
  if (used >= pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += TAKEN;
  return pool.subarray(used - TAKEN, used);
}
