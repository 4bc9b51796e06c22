import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { joined, type Measured } from "./rounds.ts";
import { spreadOf, type Spread } from "./spread.ts";

/** What a benchmark found. It is committed for reference, so nothing in it names a machine or a folder of it. */
export interface Results {
  readonly quick: boolean;
  readonly machine: Machine;
  /** What was measured under: rounds, sizes, rates, durability. */
  readonly conditions: Readonly<Record<string, number | string>>;
  readonly measured: Measured;
  /** Figures of ours that count by themselves, by names that hold the unit. */
  readonly headlines: Readonly<Record<string, Finding>>;
  readonly ratios: Readonly<Record<string, Finding>>;
}

/** What a part of a benchmark found. */
export type Findings = Pick<Results, "measured" | "headlines" | "ratios">;

export interface Finding {
  /** What it is, or what is divided by what, and which way is better. */
  readonly meaning: string;
  readonly spread: Spread;
}

export interface Machine {
  readonly cpus: number;
  /** Programs that wanted a CPU in the minute before. Near or above `cpus`: the figures are too low, and scatter. */
  readonly load: number;
  readonly node: string;
  readonly postgres: string;
  readonly redis: string;
}

const DIGITS = 4;

/** The machine as it is now, before the work. */
export function describeMachine(servers: { postgres: string; redis: string }): Machine {
  return { cpus: availableParallelism(), load: rounded(loadavg()[0] ?? 0), node: process.versions.node, ...servers };
}

/** What the parts of one benchmark found, together. */
export function joinedFindings(...parts: readonly Findings[]): Findings {
  return {
    measured: joined(...parts.map(({ measured }) => measured)),
    headlines: Object.fromEntries(parts.flatMap(({ headlines }) => Object.entries(headlines))),
    ratios: Object.fromEntries(parts.flatMap(({ ratios }) => Object.entries(ratios))),
  };
}

export function printReport({ machine, measured, headlines, ratios }: Results): void {
  const figures = Object.entries(spreads(measured)).flatMap(([contestant, own]) =>
    Object.entries(own).map(([figure, spread]) => [contestant, figure, ...cells(spread), ""]),
  );
  const findings = Object.entries({ ...headlines, ...ratios }).map(([name, { spread, meaning }]) => {
    return [name, "", ...cells(spread), meaning];
  });
  const facts = Object.entries(machine).map(([fact, value]) => `${fact} ${value}`);
  console.log(`\n  ${facts.join(", ")}\n`);
  console.log(aligned([["", "", "median", "min", "max", ""], ...figures, ["", "", "", "", "", ""], ...findings]));
  console.log();
}

/** Writes what was found, and answers the file's path from the working directory. */
export async function writeReport(name: string, results: Results): Promise<string> {
  const { quick, machine, conditions, measured, headlines, ratios } = results;
  const report = {
    benchmark: name,
    quick,
    machine,
    conditions,
    contestants: spreads(measured),
    headlines: mapped(headlines, ({ spread }) => rounded(spread.median)),
    ratios: mapped(ratios, ({ spread }) => rounded(spread.median)),
    meanings: mapped({ ...headlines, ...ratios }, ({ meaning }) => meaning),
  };
  const file = reportFile(name, quick);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${JSON.stringify(report, null, 2)}\n`);
  return relative(process.cwd(), file);
}

/** Quick runs have a file of their own, so that none takes the reference's place. */
export function reportFile(name: string, quick: boolean): string {
  return fileURLToPath(new URL(`results/${name}${quick ? ".quick" : ""}.json`, import.meta.url));
}

function spreads(measured: Measured): Record<string, Record<string, Spread>> {
  return mapped(measured, (figures) =>
    mapped(figures, (values) => {
      const { median, min, max } = spreadOf(values);
      return { median: rounded(median), min: rounded(min), max: rounded(max) };
    }),
  );
}

function mapped<From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}

function cells({ median, min, max }: Spread): string[] {
  return [median, min, max].map((value) => String(rounded(value)));
}

function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS));
}

/** Words to the left, numbers to the right. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const isNumber = (column: number) => column >= 2 && column <= 4;
  const pad = (cell: string, column: number) =>
    isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return rows.map((row) => `  ${row.map(pad).join("  ")}`.trimEnd()).join("\n");
}
