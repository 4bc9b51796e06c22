import http, { type Agent, type IncomingMessage } from "node:http";
import https from "node:https";
import { ObservationFailed } from "../observer.ts";

/** Largest answer that is read whole. One page of large workloads is a few MiB. */
const MAX_BYTES = 16 * 1_024 * 1_024;

/**
 * Sends a GET and answers when the response's head is there; follows no redirects. Aborting the signal ends the body
 * too. The Kubernetes client's own transport reads without a limit, and decodes whatever the server chooses to send:
 * Brotli too, whose decoder in Node 20 writes out of bounds on hostile input.
 */
export function openGet(url: string, { agent, headers, signal }: Get): Promise<IncomingMessage> {
  const { get } = url.startsWith("https:") ? https : http;
  const options = { headers: { ...headers, "accept-encoding": "identity" }, signal, ...(agent && { agent }) };
  return new Promise((resolve, reject) => {
    get(url, options, resolve).on("error", reject);
  });
}

/** Throws when the answer breaks off or is too large. */
export async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const body: AsyncIterable<Buffer> = response;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new ObservationFailed(`the cluster answers more than ${MAX_BYTES / 1_048_576} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

interface Get {
  agent?: Agent | undefined;
  headers: Record<string, string>;
  signal: AbortSignal;
}
