import type { Finding, Findings } from "../report.ts";

/** What is wanted of a finding, by its name: no more than so much. */
const TARGETS: Readonly<Record<string, number>> = {
  lateness_p99_ms: 5_000,
  service_cores: 1,
  growth_10k_vs_100: 1.5,
  drift_heard_p50_ms: 500,
  diff_unchanged_ms: 200,
  diff_unchanged_cpu_ms: 200,
  diff_moved_ms: 200,
  diff_moved_cpu_ms: 200,
};

export function describeTargets(): string {
  return Object.entries(TARGETS)
    .map(([name, most]) => `${name} <= ${most}`)
    .join("; ");
}

/** A line for each finding that is above what is wanted. Throws when one that something is wanted of isn't there. */
export function missedTargets({ headlines, ratios }: Findings): string[] {
  const found: Readonly<Record<string, Finding>> = { ...headlines, ...ratios };
  return Object.entries(TARGETS).flatMap(([name, most]) => {
    const finding = found[name];
    if (!finding) throw new Error(`nothing was found of ${name}`);
    const { median } = finding.spread;
    return median <= most ? [] : [`${name} is ${median.toPrecision(3)}, more than the ${most} that are wanted`];
  });
}
