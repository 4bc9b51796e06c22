import type { Comparison } from "./comparison.ts";

/** A line for each comparison, then a line for each difference. */
export function report(comparisons: readonly Comparison[]): string {
  const rows = comparisons.map(({ kind, expected, found, differences }) => [
    kind,
    ...[expected, found, differences.length].map(String),
  ]);
  const table = [["", "expected", "found", "differences"], ...rows];
  const differences = comparisons.flatMap((comparison) =>
    comparison.differences.map((difference) => `  ${comparison.kind}: ${difference}`),
  );
  const count = `${differences.length} ${differences.length === 1 ? "difference" : "differences"}`;
  return [...aligned(table), "", ...differences, count].join("\n");
}

/** The first column to the left, numbers to the right. */
function aligned([head = [], ...rows]: readonly (readonly string[])[]): string[] {
  const widths = head.map((_cell, at) => Math.max(...[head, ...rows].map((row) => row[at]?.length ?? 0)));
  return [head, ...rows].map((row) =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  "),
  );
}
