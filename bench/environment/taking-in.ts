import type { AppliedSpecification } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { startInventory } from "@runtime-cloud/runtime-environment/inventory/start-inventory";
import { observeNow } from "@runtime-cloud/runtime-environment/observing/observations";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type pg from "pg";
import { openEnvironmentContext } from "./environment-context.ts";

/** What it took to take in one look, from when the engine's answer was there. */
export interface TakenIn {
  readonly wallMs: number;
  /** Of this process. */
  readonly cpuMs: number;
  readonly changed: boolean;
}

/** Looks in this process. */
export interface TakingIn {
  /** A new environment, and what an inspection finds in it. */
  environment(applied: () => AppliedSpecification): Promise<string>;
  look(environmentId: string): Promise<TakenIn>;
  readonly pool: pg.Pool;
  close(): Promise<void>;
}

const US_PER_MS = 1_000;

export function openTakingIn(databaseUrl: string): TakingIn {
  const inspections = new Map<string, () => AppliedSpecification>();
  let answered = spentSoFar();
  const { context, close } = openEnvironmentContext(databaseUrl, {
    inspect: (environmentId) => inspections.get(environmentId)?.(),
    answered: () => void (answered = spentSoFar()),
  });
  return {
    pool: context.pool,
    close,
    async environment(applied) {
      const id = uuidv7();
      const created = { id, tenantId: "tenant-diff", projectId: uuidv7(), class: "STAGING" } as const;
      await unitOfWork(context, deadlineCause("bench", uuidv7), (unit) => startInventory(unit, context, created));
      inspections.set(id, applied);
      return id;
    },
    async look(environmentId) {
      const { changed } = await observeNow(context, environmentId, new AbortController().signal);
      const { wallMs, cpuMs } = spentSoFar();
      return { wallMs: wallMs - answered.wallMs, cpuMs: cpuMs - answered.cpuMs, changed };
    },
  };
}

function spentSoFar() {
  const { user, system } = process.cpuUsage();
  return { wallMs: performance.now(), cpuMs: (user + system) / US_PER_MS };
}
