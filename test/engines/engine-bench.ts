import type { ApplyJob, Engine, EngineJob, Planned, PlanOutcome } from "@runtime-cloud/iac-provisioning/engines/engine";
import type { EngineEvent, PlannedChange } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { manifestsEngine } from "@runtime-cloud/iac-provisioning/engines/manifests/manifests-engine";
import { receiptOf, type ResourceOutcome } from "@runtime-cloud/iac-provisioning/engines/receipt";
import { terraformEngine } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-engine";
import type { JsonObject } from "@runtime-cloud/iac-provisioning/json/canonical-json";
import { loadProgram } from "@runtime-cloud/iac-provisioning/programs/program-directory";
import {
  resolveParameters,
  sensitiveParameterValues,
} from "@runtime-cloud/iac-provisioning/programs/program-parameters";
import { postgresStateCredentials } from "@runtime-cloud/iac-provisioning/state/postgres-state-credentials";
import { postgresStateStore } from "@runtime-cloud/iac-provisioning/state/postgres-state-store";
import { secretBox } from "@runtime-cloud/iac-provisioning/state/secret-box";
import { STATE_BACKEND_PATH, stateBackend } from "@runtime-cloud/iac-provisioning/state/state-backend";
import type { StateCredentials, StateGrant } from "@runtime-cloud/iac-provisioning/state/state-credentials";
import type { StateKey } from "@runtime-cloud/iac-provisioning/state/state-key";
import type { StateStore } from "@runtime-cloud/iac-provisioning/state/state-store";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";

import { testDatabase } from "../_support/database.ts";

export const EXAMPLES = path.resolve(import.meta.dirname, "../../examples/programs");

/** Both engines on a real state backend: PostgreSQL behind a real HTTP server. */
export interface EngineBench {
  readonly engines: { readonly terraform: Engine; readonly manifests: Engine };
  readonly address: string;
  readonly store: StateStore;
  readonly credentials: StateCredentials;
  readonly pool: pg.Pool;
  /** A directory of this bench's own, removed with it. */
  readonly directory: string;
  /** What the state backend answered with 500. */
  readonly backendErrors: unknown[];
  /** An environment with nothing in it. */
  environment(): Promise<BenchEnvironment>;
  /** Writes `name@1.0.0` from its files. */
  writeProgram(name: string, files: Readonly<Record<string, string>>): Promise<string>;
  close(): Promise<void>;
}

export interface BenchEnvironment {
  readonly key: StateKey;
  readonly targetDirectory: string;
  /** A job of a new run, under a credential of its own. */
  job(programVersion: string, parameters: JsonObject, signals?: EngineJob["signals"]): Promise<EngineJob>;
}

export const NEVER: EngineJob["signals"] = {
  interrupt: new AbortController().signal,
  kill: new AbortController().signal,
};

export async function openBench(): Promise<EngineBench> {
  const database = await testDatabase("iac-provisioning");
  const pool = new pg.Pool({ connectionString: database.url, max: 4 });
  const directory = await mkdtemp(path.join(tmpdir(), "engine-bench-"));
  const programs = path.join(directory, "programs");
  const workRoot = path.join(directory, "work");
  await mkdir(workRoot);

  const store = postgresStateStore(pool);
  const credentials = postgresStateCredentials(pool, () => randomBytes(24).toString("base64url"));
  const backendErrors: unknown[] = [];
  const box = secretBox([{ id: "test", key: randomBytes(32) }]);
  const server = createServer(stateBackend({ store, credentials, box, onError: (error) => backendErrors.push(error) }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the state backend has no port");
  const address = `http://127.0.0.1:${bound.port}${STATE_BACKEND_PATH}`;

  return {
    engines: {
      terraform: terraformEngine({ searchPath: process.env["PATH"] ?? "", extraEnvironment: {} }),
      manifests: manifestsEngine({ newId: randomUUID, elapsed: () => performance.now() }),
    },
    address,
    store,
    credentials,
    pool,
    directory,
    backendErrors,

    async environment() {
      const key = { tenantId: "tenant", environmentId: randomUUID(), kind: "BASELINE" };
      const targetDirectory = path.join(directory, "environments", key.environmentId);
      return {
        key,
        targetDirectory,
        async job(programVersion, parameters, signals = NEVER) {
          const program =
            (await loadProgram(programs, programVersion)) ?? (await loadProgram(EXAMPLES, programVersion));
          if (!program) throw new Error(`there is no program ${programVersion}`);
          const resolved = resolveParameters(program, parameters);
          if (resolved.violations.length > 0) throw new Error(JSON.stringify(resolved.violations));
          return {
            program,
            parameters: resolved.parameters,
            state: { address, ...(await grant({ holderId: randomUUID(), key, epoch: 1, access: "write" })) },
            targetDirectory,
            workRoot,
            secrets: sensitiveParameterValues(program, resolved.parameters),
            signals,
          };
        },
      };
    },

    async writeProgram(name, files) {
      for (const [relative, content] of Object.entries(files)) {
        const file = path.join(programs, name, "1.0.0", relative);
        await mkdir(path.dirname(file), { recursive: true });
        await writeFile(file, content);
      }
      return `${name}@1.0.0`;
    },

    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await pool.end();
      await database.drop();
      await rm(directory, { recursive: true, force: true });
    },
  };

  async function grant(wanted: StateGrant): Promise<{ username: string; password: string }> {
    const password = await credentials.grant(wanted);
    if (password === undefined) throw new Error(`${wanted.holderId} was granted a newer epoch`);
    return { username: wanted.holderId, password };
  }
}

export interface Played<Outcome> {
  readonly events: readonly EngineEvent[];
  readonly outcome: Outcome;
}

/** Plays a verb to its end; `onEvent` is called at each event before the next is asked for. */
export async function play<Outcome>(
  verb: AsyncGenerator<EngineEvent, Outcome>,
  onEvent: (event: EngineEvent) => void | Promise<void> = () => undefined,
): Promise<Played<Outcome>> {
  const events: EngineEvent[] = [];
  for (;;) {
    const next = await verb.next();
    if (next.done === true) return { events, outcome: next.value };
    events.push(next.value);
    await onEvent(next.value);
  }
}

/** What became of each planned resource, by its address. */
export function outcomes(
  changes: readonly PlannedChange[],
  events: readonly EngineEvent[],
): Record<string, ResourceOutcome> {
  return Object.fromEntries(receiptOf(changes, events).map(({ address, outcome }) => [address, outcome]));
}

/** The plan, where one was made. */
export function planned(outcome: PlanOutcome): Planned {
  if (outcome.result === "planned") return outcome;
  throw new Error(`${outcome.failure.code}: ${outcome.failure.message}`);
}

/** What an apply is given of a plan; a state that can't be written is lost. */
export function approved({ artifact, planDigest }: Planned): Omit<ApplyJob, keyof EngineJob> {
  const rescueState = () => Promise.resolve({ result: "kept" as const, reason: "nobody rescues it here" });
  return { artifact, planDigest, mode: "APPLY", rescueState };
}
