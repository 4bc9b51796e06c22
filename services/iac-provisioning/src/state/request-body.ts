import type { IncomingMessage } from "node:http";

/** The request's body is over its bound. */
export class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
}

/** The whole body; what is over the bound is never kept. Throws BodyTooLarge. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const tooLarge = `the body is larger than ${maxBytes} bytes`;
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw new BodyTooLarge(tooLarge);
  const chunks: Buffer[] = [];
  let length = 0;
  const body: AsyncIterable<Buffer> = request;
  for await (const bytes of body) {
    length += bytes.length;
    if (length > maxBytes) throw new BodyTooLarge(tooLarge);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}
