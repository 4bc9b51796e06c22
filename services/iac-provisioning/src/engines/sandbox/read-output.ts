import { Writable } from "node:stream";

/** Where a command's stdout goes when it is read as bytes. */
export interface ByteReader {
  /** For Command.stdout. */
  readonly stdout: Writable;
  /** What `take` threw, after which nothing more was read. */
  refusal(): unknown;
}

/** Hands each piece to `take` as it comes; while that works, the command waits. */
export function byteReader(take: (bytes: Uint8Array) => void): ByteReader {
  let refusal: unknown;
  const stdout = new Writable({
    write(bytes: Buffer, _encoding, done) {
      try {
        take(bytes);
        done();
      } catch (error) {
        refusal = error;
        done(error instanceof Error ? error : new Error("output refused"));
      }
    },
  });
  return { stdout, refusal: () => refusal };
}
