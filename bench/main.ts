import { parseArgs } from "node:util";

import type { Benchmark } from "./benchmark.ts";
import { printReport, writeReport } from "./report.ts";

interface Entry {
  readonly about: string;
  /** Loaded only when it is asked for. */
  readonly load: () => Promise<Benchmark>;
}

const benchmarks: Readonly<Record<string, Entry>> = {
  capacity: {
    about: "leases on a hot pool, an expiry storm, fairness and heartbeats, beside SQL, etcd, Redis and BullMQ",
    load: async () => (await import("./capacity.ts")).benchCapacity,
  },
  environment: {
    about:
      "environments on their schedule beside a plain poller, drift until it is heard of, and very large ones compared",
    load: async () => (await import("./environment.ts")).benchEnvironment,
  },
  events: {
    about: "events from a committed outbox row to their handler, beside BullMQ, graphile-worker and pg-boss",
    load: async () => (await import("./events.ts")).benchEvents,
  },
  provisioning: {
    about: "runs beside the bare engine, their states, very large plans and a long history",
    load: async () => (await import("./provisioning.ts")).benchProvisioning,
  },
};

const USAGE = `Usage: npm run bench -- NAME [--quick]

${Object.entries(benchmarks)
  .map(([name, { about }]) => `  ${name.padEnd(12)} ${about}`)
  .join("\n")}

  --quick      fewer and shorter rounds, a minute or two, written to NAME.quick.json, which git ignores

Each starts servers of its own, prints a table and writes it to bench/results/NAME.json. Contestants take turns round by
round, so compare figures of one run, not of two. Nothing is judged by its time: it reports.`;

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  if (args.length === 0) {
    console.log(USAGE);
    return 0;
  }
  const asked = parse(args);
  if (typeof asked === "string") {
    console.error(`${asked}\n\n${USAGE}`);
    return 2;
  }
  try {
    const run = await asked.entry.load();
    const results = await run({ quick: asked.quick, log: (line) => console.log(`  ${line}`) });
    printReport(results);
    console.log(`  written to ${await writeReport(asked.name, results)}`);
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return 1;
  }
}

/** The benchmark that is asked for, or what is wrong with the arguments. */
function parse(args: string[]): { name: string; entry: Entry; quick: boolean } | string {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { quick: { type: "boolean", default: false } },
    });
    const [name, ...rest] = positionals;
    if (name === undefined) return "The benchmark's NAME is missing.";
    if (rest.length > 0) return `Too many arguments: ${positionals.join(" ")}`;
    const entry = Object.hasOwn(benchmarks, name) ? benchmarks[name] : undefined;
    return entry ? { name, entry, quick: values.quick } : `Unknown benchmark: ${name}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
