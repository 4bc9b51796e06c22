import { randomInt } from "node:crypto";

/** How much the properties are tried on, and with what: the same for every file of this folder. */
export interface Amount {
  /** Operations that the concurrent property generates: CAPACITY_OPERATIONS. */
  operations: number;
  /** By how much more than in a plain `npm test` the other properties try. */
  factor: number;
  /** Of what is generated: CAPACITY_SEED repeats a run that was printed. */
  seed: number;
}

const OPERATIONS = 20_000;

export const amount: Amount = amountOf(process.env);

function amountOf(env: NodeJS.ProcessEnv): Amount {
  const operations = wholeNumber(env, "CAPACITY_OPERATIONS") ?? OPERATIONS;
  return {
    operations,
    factor: Math.max(1, Math.round(operations / OPERATIONS)),
    seed: wholeNumber(env, "CAPACITY_SEED") ?? randomInt(2 ** 31),
  };
}

function wholeNumber(env: NodeJS.ProcessEnv, name: string): number | undefined {
  const given = env[name];
  if (given === undefined || given === "") return undefined;
  const value = Number(given);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new Error(`${name} is ${JSON.stringify(given)}: give a whole number above 0, or leave it unset`);
}
