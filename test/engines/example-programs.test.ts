import type { EngineEvent } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import type { JsonObject } from "@runtime-cloud/iac-provisioning/json/canonical-json";
import { loadProgram } from "@runtime-cloud/iac-provisioning/programs/program-directory";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";

import { approved, type EngineBench, EXAMPLES, openBench, outcomes, planned, play } from "./engine-bench.ts";

let bench: EngineBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(() => bench.close());

const PASSWORD = "p@ss/word with spaces";

interface Example {
  program: string;
  parameters: JsonObject;
  resources: number;
  /** Values or matchers of them. */
  outputs: object;
  /** In clear only where they are sealed. */
  sensitiveOutputs?: JsonObject;
}

const examples: Example[] = [
  {
    program: "environment-baseline@1.0.0",
    parameters: { environment: "e1", environment_class: "PRODUCTION" },
    resources: 5,
    outputs: {
      network_id: expect.any(String),
      subnet_ids: { a: expect.any(String), b: expect.any(String), c: expect.any(String) },
      components: [],
    },
  },
  {
    program: "environment-baseline@1.1.0",
    parameters: { environment: "e1", namespaces: ["apps", "data"], quotas: { data: { memory_gib: 64 } } },
    resources: 10,
    outputs: {
      network_id: expect.any(String),
      subnet_ids: { a: expect.any(String), b: expect.any(String) },
      namespaces: {
        apps: { name: "e1-apps", quota: { cpu: 8, memory_gib: 32, pods: 50 } },
        data: { name: "e1-data", quota: { cpu: 8, memory_gib: 64, pods: 50 } },
      },
      components: [],
    },
  },
  {
    program: "worker-pool@1.0.0",
    parameters: { pool_id: "pool-1", size: 3, generation: 7 },
    resources: 3,
    outputs: { pools: [{ poolId: "pool-1", size: 3, generation: 7 }] },
  },
  {
    program: "storefront@1.0.0",
    parameters: {
      environment: "e1",
      release: "2.4.0",
      components: { web: { replicas: 2, path: "/" }, cart: { version: "2.3.9" } },
    },
    resources: 9,
    outputs: {
      components: [
        { name: "cart", version: "2.3.9", replicas: 1 },
        { name: "web", version: "2.4.0", replicas: 2 },
      ],
      url: "https://shop.example/",
      routes: { "/": "http://web.e1.internal:8080" },
    },
  },
  {
    program: "managed-database@1.0.0",
    parameters: { environment: "e1", replicas: 1, admin_password: PASSWORD, owner_passwords: { app: "owner-secret" } },
    resources: 4,
    outputs: {
      host: "postgres.e1.internal",
      port: 5432,
      databases: ["app"],
      components: [{ name: "e1-postgres", version: "17", replicas: 2 }],
    },
    sensitiveOutputs: {
      admin_connection_string:
        "postgresql://postgres:p%40ss%2Fword+with+spaces@postgres.e1.internal:5432/postgres?sslmode=require",
      connection_strings: {
        app: "postgresql://app_owner:owner-secret@postgres.e1.internal:5432/app?sslmode=require",
      },
    },
  },
  {
    program: "environment-baseline-manifests@1.0.0",
    parameters: { environment: "e1" },
    resources: 3,
    outputs: { network_id: "e1-network", components: [] },
  },
  {
    program: "web-service@1.0.0",
    parameters: { name: "shop", environment: "e1", version: "1.2.3", replicas: 3 },
    resources: 4,
    outputs: { components: [{ name: "shop", version: "1.2.3", replicas: 3 }] },
  },
];

describe.each(examples)("$program", ({ program, parameters, resources, outputs, sensitiveOutputs = {} }) => {
  test("plans, applies to its outputs, and has nothing left to change", async () => {
    const declared = await loadProgram(EXAMPLES, program);
    if (!declared) throw new Error(`${program} isn't there`);
    const engine = bench.engines[declared.engine];
    const environment = await bench.environment();

    const plan = await play(engine.plan({ ...(await environment.job(program, parameters)), mode: "APPLY" }));
    const first = planned(plan.outcome);
    expect(first).toMatchObject({
      summary: { adds: resources, changes: 0, deletes: 0, replaces: 0 },
      destructive: false,
    });

    const job = await environment.job(program, parameters);
    const secrets = [...job.secrets, ...first.sensitiveValues];
    const apply = await play(engine.apply({ ...job, ...approved(first), secrets }));
    expect(apply.outcome).toEqual({ result: "applied", outputs, sensitiveOutputs });
    expect(new Set(Object.values(outcomes(first.changes, apply.events)))).toEqual(new Set(["APPLIED"]));

    const again = await play(engine.plan({ ...(await environment.job(program, parameters)), mode: "APPLY" }));
    expect(planned(again.outcome)).toMatchObject({ noChanges: true, outputs, sensitiveOutputs });
    expectNoSecret([...plan.events, ...apply.events, ...again.events]);
    expect(JSON.stringify(first.changes)).not.toContain("owner-secret");
  });

  test("describes every parameter that it takes", async () => {
    const declared = await loadProgram(EXAMPLES, program);
    for (const { description } of Object.values(declared?.parameters ?? {})) expect(description).toMatch(/\w.*\.$/s);
  });
});

function expectNoSecret(events: readonly EngineEvent[]): void {
  const shown = JSON.stringify(events);
  for (const secret of [PASSWORD, "owner-secret", encodeURIComponent(PASSWORD)]) expect(shown).not.toContain(secret);
}
