import { StringDecoder } from "node:string_decoder";
import { Transform } from "node:stream";

export interface OutputLine {
  readonly stream: "stdout" | "stderr";
  readonly line: string;
}

/** Turns bytes into one OutputLine per line, holding no more than one bounded line in memory; the rest of a longer line is dropped. */
export function lineSplitter(stream: OutputLine["stream"], maxLineLength: number): Transform {
  const decoder = new StringDecoder("utf8");
  let pending = "";
  const keep = (text: string) => (pending + text).slice(0, maxLineLength);
  return new Transform({
    readableObjectMode: true,
    transform(chunk: Buffer, _encoding, done) {
      const [first = "", ...others] = decoder.write(chunk).split("\n");
      pending = keep(first);
      for (const next of others) {
        this.push({ stream, line: pending });
        pending = next.slice(0, maxLineLength);
      }
      done();
    },
    flush(done) {
      pending = keep(decoder.end());
      if (pending !== "") this.push({ stream, line: pending });
      done();
    },
  });
}
