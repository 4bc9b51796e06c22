import http from "node:http";
import https from "node:https";
import { text } from "node:stream/consumers";
import { Transform } from "node:stream";

/** Largest key set that is read. */
const MAX_BYTES = 65_536;

/**
 * Reads a key set for jose without the global `fetch`, which decodes Brotli whatever we ask for: Node 20's decoder
 * writes out of bounds on hostile input and gets no more fixes.
 */
export async function fetchKeys(url: string, { signal, headers }: { signal: AbortSignal; headers: Headers }) {
  const { get } = url.startsWith("https:") ? https : http;
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    get(url, { signal, headers: { ...Object.fromEntries(headers), "accept-encoding": "identity" } }, resolve).on(
      "error",
      reject,
    );
  });
  const body = await text(response.pipe(limit(MAX_BYTES)));
  return new Response(body, { status: response.statusCode ?? 0 });
}

function limit(maxBytes: number): Transform {
  let seen = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen += chunk.length;
      done(seen > maxBytes ? new Error(`the key set is larger than ${maxBytes} bytes`) : null, chunk);
    },
  });
}
