import type { Diagnostic } from "./engine-event.ts";
import { plainLine } from "./redaction/plain-text.ts";

const BOX = /^[╷│╵]\s?/;
const LOCATION = /^\s*on (\S+) line (\d+)\b/;
/** The piece of the program that is quoted, and the values of what stands in it. */
const SNIPPET = /^\s*(?:\d+:|├|│)/;
const ADDRESS = /^\s+with (\S.*),$/;

/**
 * Errors in the CLI's human form, as it prints them where it speaks no JSON: each `Error: …` line with what follows it,
 * but for the quoted piece of the program.
 */
export function textDiagnostics(lines: readonly string[]): Diagnostic[] {
  const text = lines.map((line) => line.replace(BOX, "")).join("\n");
  return text
    .split(/^Error: /m)
    .slice(1)
    .map((part) => {
      const [summary = "", ...rest] = part.split("\n");
      const [, file, line] = firstMatch(rest, LOCATION);
      const [, address] = firstMatch(rest, ADDRESS);
      const detail = rest.filter((text) => ![LOCATION, SNIPPET, ADDRESS].some((pattern) => pattern.test(text)));
      return {
        severity: "error",
        summary: plainLine(summary),
        detail: plainLine(detail.join(" ")),
        ...(address === undefined ? {} : { address }),
        ...(file === undefined ? {} : { location: `${file} line ${line}` }),
      };
    });
}

function firstMatch(lines: readonly string[], pattern: RegExp): readonly (string | undefined)[] {
  for (const line of lines) {
    const match = pattern.exec(line);
    if (match) return match;
  }
  return [];
}
