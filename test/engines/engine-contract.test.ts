import type { Engine } from "@runtime-cloud/iac-provisioning/engines/engine";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";

import {
  approved,
  openBench,
  outcomes,
  planned,
  play,
  type BenchEnvironment,
  type EngineBench,
} from "./engine-bench.ts";

const CANARY = "c4nary-hunter2-value";

let bench: EngineBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(async () => {
  expect(bench.backendErrors).toEqual([]);
  await bench.close();
});

describe.each([
  { name: "terraform" as const, baseline: "environment-baseline@1.0.0", broken: "broken-service@1.0.0", resources: 4 },
  {
    name: "manifests" as const,
    baseline: "environment-baseline-manifests@1.0.0",
    broken: "broken-service-manifests@1.0.0",
    resources: 3,
  },
])("$name", ({ name, baseline, broken, resources }) => {
  const parameters = { environment: "staging", environment_class: "STAGING" };
  const engine = (): Engine => bench.engines[name];

  test("plans, applies, finds nothing more to do and no drift, destroys, and then misses all", async () => {
    const environment = await bench.environment();
    const job = await environment.job(baseline, parameters);

    const plan = await planFor(job);
    expect(plan).toMatchObject({
      destructive: false,
      noChanges: false,
      summary: { adds: resources, changes: 0, deletes: 0, replaces: 0 },
      state: { lineage: "", serial: 0 },
    });
    expect(plan.planDigest).toMatch(/^sha256:[0-9a-f]{64}$/);

    const applied = await play(engine().apply({ ...job, ...approved(plan) }));
    expect(applied.outcome).toMatchObject({ result: "applied", outputs: { components: [] } });
    expect(Object.values(outcomes(plan.changes, applied.events))).toEqual(Array(resources).fill("APPLIED"));

    const again = await planFor(await environment.job(baseline, parameters));
    expect(again).toMatchObject({ noChanges: true, outputs: { components: [] }, state: { serial: 1 } });

    const observed = await play(engine().drift(await environment.job(baseline, parameters)));
    expect(observed.outcome).toMatchObject({ result: "observed", drift: [], outputs: { components: [] } });
    if (observed.outcome.result === "observed") expect(observed.outcome.resources).toHaveLength(resources);

    const teardown = await environment.job(baseline, parameters);
    const end = await planFor(teardown, "DESTROY");
    expect(end).toMatchObject({ destructive: true, summary: { adds: 0, deletes: resources } });
    const destroyed = await play(engine().apply({ ...teardown, ...approved(end), mode: "DESTROY" }));
    expect(destroyed.outcome.result).toBe("applied");

    const gone = await play(engine().drift(await environment.job(baseline, parameters)));
    expect(gone.outcome).toMatchObject({ result: "observed", resources: [] });
    if (gone.outcome.result === "observed") {
      expect(gone.outcome.drift.map(({ kind }) => kind)).toEqual(Array(resources).fill("RESOURCE_MISSING"));
    }
  });

  test("a failing program tells what was applied, what failed and what was never tried", async () => {
    const environment = await bench.environment();
    const job = await environment.job(broken, {});
    const plan = await planFor(job);
    const { events, outcome } = await play(engine().apply({ ...job, ...approved(plan) }));

    expect(Object.values(outcomes(plan.changes, events)).sort()).toEqual([
      "APPLIED",
      "APPLIED",
      "FAILED",
      "NOT_ATTEMPTED",
    ]);
    const failed = Object.entries(outcomes(plan.changes, events)).find(([, result]) => result === "FAILED");
    expect(outcome).toMatchObject({ result: "partially-applied", outputs: {}, failure: { code: "ENGINE_ERROR" } });
    expect(outcome.failure?.address).toBe(failed?.[0]);
    expect(outcome.failure?.message).toMatch(/exit status 1|ENAMETOOLONG/);
  });

  test("refuses a plan once the state moved on, and changes nothing", async () => {
    const environment = await bench.environment();
    const [one, two] = [await environment.job(baseline, parameters), await environment.job(baseline, parameters)];
    const [first, second] = [await planFor(one), await planFor(two)];
    await play(engine().apply({ ...one, ...approved(first) }));

    const { events, outcome } = await play(engine().apply({ ...two, ...approved(second) }));
    expect(outcome).toMatchObject({ result: "failed", failure: { code: "STALE_PLAN" } });
    expect(events.filter(({ type }) => type === "resource-started")).toEqual([]);
    const once = await play(engine().apply({ ...one, ...approved(first) }));
    expect(once.outcome).toMatchObject({ result: "failed", failure: { code: "STALE_PLAN" } });
  });

  test("refuses a plan that is not the approved one", async () => {
    const environment = await bench.environment();
    const job = await environment.job(baseline, parameters);
    const plan = await planFor(job);
    const other = await planFor(await environment.job(baseline, { ...parameters, region: "elsewhere" }));
    expect(other.planDigest).not.toBe(plan.planDigest);
    const swapped = { artifact: other.artifact, planDigest: plan.planDigest };
    const { outcome } = await play(engine().apply({ ...job, ...approved(plan), ...swapped }));
    expect(outcome).toMatchObject({ result: "failed", failure: { code: "STALE_PLAN" } });
  });

  test("refuses a program whose content is not that of its digest", async () => {
    const environment = await bench.environment();
    const job = await environment.job(baseline, parameters);
    const digest = `sha256:${"0".repeat(64)}`;
    const { outcome } = await play(engine().plan({ ...job, program: { ...job.program, digest }, mode: "APPLY" }));
    expect(outcome).toMatchObject({ result: "failed", failure: { code: "INVALID_PROGRAM" } });
  });

  test("a credential that was replaced by a newer epoch's is refused", async () => {
    const environment = await bench.environment();
    const job = await environment.job(baseline, parameters);
    await bench.credentials.grant({ holderId: job.state.username, key: environment.key, epoch: 2, access: "write" });
    const { outcome } = await play(engine().plan({ ...job, mode: "APPLY" }));
    expect(outcome).toMatchObject({ result: "failed", failure: { code: "STATE_REFUSED" } });
    expect(JSON.stringify(outcome)).not.toContain(job.state.password);
  });

  test("an interrupt before the first step ends as INTERRUPTED and changes nothing", async () => {
    const environment = await bench.environment();
    const job = await environment.job(baseline, parameters);
    const plan = await planFor(job);
    const signals = { interrupt: AbortSignal.abort(), kill: job.signals.kill };
    const { outcome } = await play(engine().apply({ ...job, ...approved(plan), signals }));
    expect(outcome).toMatchObject({ result: "failed", failure: { code: "INTERRUPTED" } });
    expect(await bench.store.read(environment.key)).toBeUndefined();
  });

  test("no secret shows in any event or outcome, nor in the database", async () => {
    const program = await secretProgram(name);
    const environment = await bench.environment();
    const job = await environment.job(program, { api_token: CANARY, greeting: "hello" });
    const plan = await play(engine().plan({ ...job, mode: "APPLY" }));
    if (plan.outcome.result !== "planned") throw new Error(plan.outcome.failure.message);
    const apply = await play(
      engine().apply({
        ...job,
        ...approved(plan.outcome),
        secrets: [...job.secrets, ...plan.outcome.sensitiveValues],
      }),
    );
    const again = await planFor(await environment.job(program, { api_token: CANARY, greeting: "hello" }));
    const drift = await play(engine().drift(await environment.job(program, { api_token: "c4nary-other-value" })));

    expect(apply.outcome.result).toBe("applied");
    expect(JSON.stringify(apply.outcome.sensitiveOutputs)).toContain(CANARY);
    const { outputs, sensitiveOutputs } = apply.outcome;
    expect(again).toMatchObject({ noChanges: true, outputs, sensitiveOutputs });
    expect(plan.outcome.sensitiveValues).toContain(CANARY);
    const shown = [plan, apply, again, drift].map((played) => JSON.stringify(played, withoutSecretFields)).join();
    expect(shown).toContain("hello");
    expect(shown).not.toContain("c4nary");
    expect(shown).not.toContain(Buffer.from(CANARY).toString("base64").slice(0, 20));
    expect(drift.outcome).toMatchObject({ result: "observed" });

    const { rows } = await bench.pool.query(
      "SELECT state::text AS text FROM engine_state state UNION ALL SELECT encode(sealed, 'escape') FROM engine_state_version",
    );
    expect(JSON.stringify(rows)).not.toContain("c4nary");
  });

  async function planFor(job: Awaited<ReturnType<BenchEnvironment["job"]>>, mode: "APPLY" | "DESTROY" = "APPLY") {
    return planned((await play(engine().plan({ ...job, mode }))).outcome);
  }
});

/** The fields whose doc comment says "Secret". */
function withoutSecretFields(key: string, value: unknown): unknown {
  return ["artifact", "sensitiveValues", "sensitiveOutputs"].includes(key) ? undefined : value;
}

async function secretProgram(engine: "terraform" | "manifests"): Promise<string> {
  const declaration = [
    `engine: ${engine}`,
    "description: Holds a secret.",
    "parameters:",
    "  api_token: { type: string, required: true, sensitive: true }",
    "  greeting: { type: string, default: hello }",
  ].join("\n");
  if (engine === "manifests") {
    return bench.writeProgram("secret-manifests", {
      "program.yaml": `${declaration}\noutputs:\n  greeting: \${greeting}\n  link: https://x/?t=\${api_token}\n`,
      "templates/settings.yaml":
        "kind: ConfigMap\ndata: { greeting: '${greeting}', url: 'https://x/?t=${api_token}' }\n",
    });
  }
  return bench.writeProgram("secret-terraform", {
    "program.yaml": declaration,
    "main.tf": `
      variable "api_token" {
        type      = string
        sensitive = true
      }
      variable "greeting" { type = string }
      resource "terraform_data" "held" {
        input = { greeting = var.greeting, url = "https://x/?t=\${var.api_token}" }
        provisioner "local-exec" {
          command = "echo leaking \${nonsensitive(var.api_token)}; echo \${nonsensitive(base64encode(var.api_token))} >&2"
        }
      }
      output "greeting" { value = var.greeting }
      output "link" {
        value     = terraform_data.held.output.url
        sensitive = true
      }
    `,
  });
}
