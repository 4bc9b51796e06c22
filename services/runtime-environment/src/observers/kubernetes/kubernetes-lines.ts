import { StringDecoder } from "node:string_decoder";

/** Longest line that is read: one object, which etcd keeps below 1.5 MiB, in JSON. */
const MAX_LINE_LENGTH = 8 * 1_024 * 1_024;

/** Whole lines of a stream as they come. Half a line at its end isn't one. Throws when a line is too long. */
export async function* linesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  for await (const chunk of stream) {
    const parts = (rest + decoder.write(chunk)).split("\n");
    rest = parts.pop() ?? "";
    if (rest.length > MAX_LINE_LENGTH) throw new RangeError("a line is too long");
    yield* parts.filter((line) => line !== "");
  }
}
