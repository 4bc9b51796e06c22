import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";

/** A header, of which a plain file needs the name only, and what the entry holds. */
export type TarEntry = Partial<Header> & { name: string; content?: string | Buffer };

/** A tar of just these entries, whatever they say. */
export async function tarOf(entries: readonly TarEntry[]): Promise<Buffer> {
  const packing = pack();
  for (const { content, ...header } of entries) packing.entry(header, content ?? "");
  packing.finalize();
  return buffer(packing);
}

/** A program's tar.gz from its files. */
export async function archiveOf(files: Readonly<Record<string, string>>): Promise<Buffer> {
  return gzipSync(await tarOf(Object.entries(files).map(([name, content]) => ({ name, content }))));
}

const TYPE_AT = 156;
const CHECKSUM = { start: 148, end: 156 };
const HEADER_BYTES = 512;

/** The tar with its first entry's type flag replaced, checksum and all: for types that no library writes. */
export function withTypeFlag(tar: Buffer, flag: string): Buffer {
  const forged = Buffer.from(tar);
  forged.write(flag, TYPE_AT, "latin1");
  forged.fill(" ", CHECKSUM.start, CHECKSUM.end);
  const sum = forged.subarray(0, HEADER_BYTES).reduce((total, byte) => total + byte, 0);
  forged.write(`${sum.toString(8).padStart(6, "0")}\0 `, CHECKSUM.start, "latin1");
  return forged;
}
