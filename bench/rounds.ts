import { spreadOf, type Spread } from "./spread.ts";

/** One of those that do the same work. */
export interface Contestant {
  readonly name: string;
  round(): Promise<Round>;
}

/** Work that was done and timed. */
export interface Round {
  /** By names that hold the unit: `events_per_second`. The same names each round. */
  readonly figures: Readonly<Record<string, number>>;
  /** Throws unless the work was done right, all of it and once. Not timed. */
  check(): Promise<void>;
}

/** Each contestant's figures, a value for each round. */
export type Measured = Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>;

/**
 * Lets the contestants take turns, each round led by another one, so that a machine that slows down or warms up does it
 * to all of them. A round that was done wrong ends it all: its time means nothing.
 */
export async function takeTurns(contestants: readonly Contestant[], rounds: number): Promise<Measured> {
  const measured: Record<string, Record<string, number[]>> = {};
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, round: play } of led(contestants, round)) {
      const { figures, check } = await play();
      await check().catch((cause: unknown) => {
        throw new Error(`${name} did round ${round + 1} wrong: ${String(cause)}`, { cause });
      });
      for (const [figure, value] of Object.entries(figures)) ((measured[name] ??= {})[figure] ??= []).push(value);
    }
  }
  return measured;
}

/** What several comparisons measured, the same contestants' figures together. */
export function joined(...parts: readonly Measured[]): Measured {
  const all: Record<string, Readonly<Record<string, readonly number[]>>> = {};
  for (const part of parts) {
    for (const [name, figures] of Object.entries(part)) all[name] = { ...all[name], ...figures };
  }
  return all;
}

/** A contestant's figure, over its rounds. */
export function figureOf(measured: Measured, figure: string, contestant: string): Spread {
  return spreadOf(measured[contestant]?.[figure] ?? []);
}

/** One figure of a contestant divided by another's, round by round. */
export function ratio(measured: Measured, figure: string, dividend: string, divisor: string): Spread {
  const [above, below] = [dividend, divisor].map((name) => measured[name]?.[figure] ?? []);
  if (!above?.length || above.length !== below?.length) throw new Error(`${dividend} and ${divisor} have no ${figure}`);
  return spreadOf(above.map((value, round) => value / (below[round] ?? NaN)));
}

function led(contestants: readonly Contestant[], round: number): readonly Contestant[] {
  const leader = round % contestants.length;
  return [...contestants.slice(leader), ...contestants.slice(0, leader)];
}
