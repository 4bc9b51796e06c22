import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { FindingState, ProposalState, SyncStatus } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import {
  type DriftingEnvironment,
  driftingEnvironment,
  publish,
  publishWeb,
  QUICK_BASELINE,
} from "../_support/drifting-environments.ts";
import { countRows } from "../_support/rows.ts";

const START_MS = 60_000;
const TEST_MS = 480_000;
/** An environment's delay, in seconds: what comes and goes within it is noise. */
const LONG = 3_600;
const SHORT = 1;
const MANY = 1_000;
const MANY_WITHIN_MS = 180_000;

let deployment: TestDeployment;

beforeAll(async () => {
  const services = ["iac-provisioning", "runtime-environment"] as const;
  deployment = await deploy(services, undefined, { baselineProgram: QUICK_BASELINE });
  await publishWeb(deployment.stage);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

/** An environment makes proposals by itself once its drift is as old as the delay, and so is what has vanished over. */
async function setDelay({ environmentId }: DriftingEnvironment, seconds: number): Promise<void> {
  await deployment.stage.environments.configureEnvironment({
    environmentId,
    observeEvery: { seconds: 3_600n },
    staleAfter: { seconds: 7_200n },
    proposeAfter: { seconds: BigInt(seconds) },
  });
}

/** However slow the machine is, whatever happens to it is within its delay. */
async function patientEnvironment(): Promise<DriftingEnvironment> {
  const environment = await driftingEnvironment(deployment.stage);
  await setDelay(environment, LONG);
  return environment;
}

/** Somebody changes the value and changes it back, and each is seen. */
async function flap(environment: DriftingEnvironment, values: readonly number[]): Promise<void> {
  for (const value of values) {
    await environment.setReplicas(value);
    await environment.observe();
  }
}

test.concurrent(
  "a value that goes to and fro and stays right is one finding, announced once, and no proposal",
  async () => {
    const environment = await patientEnvironment();
    await flap(environment, [1, 3, 1, 3, 2, 3]);
    const [finding, ...others] = await environment.findings();
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ state: FindingState.OPEN, attribute: "spec.replicas" });
    expect(finding?.vanishedAt).toBeDefined();
    expect((await environment.get()).sync).toBe(SyncStatus.IN_SYNC);

    await setDelay(environment, SHORT);
    await eventually("the finding's end", async () => {
      const [seen] = await environment.findings();
      return seen?.state === FindingState.RESOLVED ? true : undefined;
    });
    expect(await environment.findings()).toHaveLength(1);
    expect(await environment.proposals()).toEqual([]);
    expect(environment.detected()).toBe(1);
  },
  TEST_MS,
);

test.concurrent(
  "a value that goes to and fro and stays wrong is one finding, and one proposal once it has been quiet for the delay",
  async () => {
    const environment = await patientEnvironment();
    await flap(environment, [1, 3, 2, 3]);
    const changedLast = Date.now();
    await flap(environment, [1]);
    expect(await environment.proposals()).toEqual([]);
    await setDelay(environment, SHORT);
    const [first] = await eventually("a proposal", async () => {
      const made = await environment.proposals();
      return made.length > 0 ? made : undefined;
    });
    const proposedAt = first?.proposedAt && timestampDate(first.proposedAt).getTime();
    expect(proposedAt).toBeGreaterThanOrEqual(changedLast + SHORT * 1_000);
    expect(await environment.findings()).toMatchObject([{ state: FindingState.PROPOSED }]);

    await setDelay(environment, LONG);
    // What was proposed is no longer what is there: it is superseded once, not once for each change.
    await flap(environment, [2, 1, 2, 1, 2]);
    expect((await environment.proposals()).map(({ state }) => state)).toEqual([ProposalState.SUPERSEDED]);
    const findings = await environment.findings();
    expect(findings).toMatchObject([{ state: FindingState.OPEN, findingId: first?.findingIds[0] }]);
  },
  TEST_MS,
);

test.concurrent(
  "a drift that vanishes takes its proposal along, and is another finding when it comes back",
  async () => {
    const environment = await driftingEnvironment(deployment.stage);
    await flap(environment, [1]);
    const proposal = await environment.propose();
    await flap(environment, [3]);
    expect(await environment.findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
    expect((await environment.proposals()).map(({ state }) => state)).toEqual([ProposalState.OBSOLETE]);
    await expect(environment.accept(proposal)).rejects.toThrow(/OBSOLETE/);

    await flap(environment, [1]);
    const [again, before] = await environment.findings();
    expect(again).toMatchObject({ state: FindingState.OPEN, previousFindingId: before?.findingId });
    await eventually("both to be announced", () => (environment.detected() === 2 ? true : undefined));
  },
  TEST_MS,
);

test.concurrent(
  "what an engine tells at every look and nobody has changed raises nothing",
  async () => {
    const restless = "restless@1.0.0";
    await publish(deployment.stage, restless, {
      "program.yaml": "engine: terraform\ndescription: Its plans are never empty.\n",
      "main.tf": `
resource "terraform_data" "app" { input = "app" }
output "looked_at" { value = timestamp() }
`,
    });
    const environment = await driftingEnvironment(deployment.stage, { programVersion: restless });
    const before = await environment.observe();
    const after = await environment.observe();
    expect(after).toMatchObject({ sync: SyncStatus.IN_SYNC, revision: before.revision });
    expect(after.observedAt).not.toEqual(before.observedAt);
    expect(after.observationFailure).toBeUndefined();
    expect(await environment.findings()).toEqual([]);
  },
  TEST_MS,
);

test.concurrent(
  "a thousand resources that drift at once are found by one look, and put right by one proposal",
  async () => {
    const { stage } = deployment;
    const crowd = "crowd@1.0.0";
    const files = Array.from({ length: MANY }, (_, index) => `part-${index}.yaml`);
    await publish(stage, crowd, {
      "program.yaml": "engine: manifests\ndescription: Many small files.\n",
      ...Object.fromEntries(files.map((file) => [`templates/${file}`, "kind: ConfigMap\ndata:\n  size: small\n"])),
    });
    const environment = await driftingEnvironment(stage, { programVersion: crowd });
    const { environmentId, directory } = environment;
    for (const file of files) await edit(join(directory, file));

    const seen = await environment.observe();
    expect(seen.observationFailure).toBeUndefined();
    expect(seen.sync).toBe(SyncStatus.DRIFTED);
    const inState = (state: string) =>
      countRows(
        stage.databases["runtime-environment"],
        "finding WHERE environment_id = $1 AND state::text = $2",
        ...[environmentId, state],
      );
    expect(await inState("OPEN")).toBe(MANY);
    const proposal = await environment.propose();
    expect(new Set(proposal.findingIds).size).toBe(MANY);
    expect(proposal.preview?.summary).toMatchObject({ changes: MANY });

    await environment.accept(proposal);
    await environment.proposalIn(proposal.proposalId, ProposalState.COMPLETED);
    const resolved = async () => ((await inState("RESOLVED")) === MANY ? true : undefined);
    await eventually("all of them RESOLVED", resolved, MANY_WITHIN_MS);
    expect(await environment.proposals()).toHaveLength(1);
    expect((await environment.get()).sync).toBe(SyncStatus.IN_SYNC);
    const announced = () => (environment.detected() === MANY ? true : undefined);
    await eventually("each to be announced once", announced, MANY_WITHIN_MS);
  },
  TEST_MS,
);

async function edit(file: string): Promise<void> {
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace("size: small", "size: large"));
}
