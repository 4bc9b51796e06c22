import type { Scrubber } from "./scrub.ts";

/** Longest line of a log, a diagnostic or a failure: what is beyond it is cut and said to be. */
export const MAX_LINE_LENGTH = 4096;

// eslint would have these written without control characters, which is just what they are here to find.
const ANSI_SEQUENCE = new RegExp(
  "\\u001b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)|[@-_])",
  "g",
);
const CONTROL_CHARACTER = new RegExp("[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028\\u2029]", "g");

/** Text without terminal sequences and control characters (tabs and newlines stay), cut to a bound. */
export function plainText(text: string, maxLength: number = MAX_LINE_LENGTH): string {
  const plain = text.replace(ANSI_SEQUENCE, "").replace(CONTROL_CHARACTER, "");
  return wellFormed(
    plain.length <= maxLength ? plain : `${plain.slice(0, maxLength)}… (${plain.length - maxLength} more characters)`,
  );
}

/** Without halves of surrogate pairs, which a cut leaves and no database takes. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** The same on one line: runs of white space become one space. */
export function plainLine(text: string, maxLength?: number): string {
  return plainText(text.replace(/\s+/g, " ").trim(), maxLength);
}

/** Plain text without secrets. A secret is looked for after terminal sequences are gone and before anything is cut. */
export function safeText(text: string, scrub: Scrubber, maxLength?: number): string {
  return plainText(scrub.text(plainText(text, Infinity)), maxLength);
}

export function safeLine(text: string, scrub: Scrubber, maxLength?: number): string {
  return plainLine(scrub.text(plainText(text, Infinity)), maxLength);
}
