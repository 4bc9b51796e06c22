import { z } from "zod";
import type { StateDocument } from "../state-client.ts";

const MAX_REMEMBERED = 1_000;
/** A provider that is part of the CLI. */
const BUILT_IN = "terraform.io/builtin/";
const PROVIDERS = /"provider":\s*"((?:[^"\\]|\\.)*)"/g;

/** Every setting of the backend comes by the environment. */
const backendRecord = z.strictObject({
  version: z.int(),
  terraform_version: z.string(),
  backend: z.strictObject({ type: z.literal("http"), config: z.record(z.string(), z.null()), hash: z.int() }),
});

/**
 * What `init` leaves of a program that brings in nothing, neither provider nor module: a record of the backend. It is
 * the same whatever the parameters are, so the next work directory gets it in place of a start of the CLI.
 */
export interface Preparations {
  /** Undefined when the CLI has to prepare the work directory itself. */
  of(programDigest: string, state: StateDocument): string | undefined;
  /** `record` is the only file that `init` left; undefined when there were others. */
  remember(programDigest: string, record: string | undefined): void;
}

/** Those of one CLI. */
export function rememberedPreparations(): Preparations {
  const records = new Map<string, string>();
  return {
    of: (programDigest, state) => (isBuiltIn(state) ? records.get(programDigest) : undefined),
    remember(programDigest, record) {
      if (record === undefined || !isOurs(record)) return;
      const [oldest] = records.keys();
      if (oldest !== undefined && records.size >= MAX_REMEMBERED) records.delete(oldest);
      records.set(programDigest, record);
    },
  };
}

/** A state that an earlier version of the program left may want providers that the program itself doesn't. */
function isBuiltIn({ text }: StateDocument): boolean {
  return [...text.matchAll(PROVIDERS)].every(([, provider = ""]) => provider.includes(BUILT_IN));
}

/** What ran beside the CLI as the same user may have put another backend's address there, for others to follow. */
function isOurs(record: string): boolean {
  try {
    return backendRecord.safeParse(JSON.parse(record)).success;
  } catch {
    return false;
  }
}
