import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { ObservedValueSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
  SpecificationState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  declare,
  type IacService,
  plan,
  type ProvisioningClient,
  refusalOf,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";

let service: IacService;
let tenantId: string;
let client: ProvisioningClient;
let environmentId: string;
let specificationId: string;
let deployment: string;
const releaseId = uuidv7();

beforeAll(async () => {
  service = await startIacProvisioning();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  client = service.as(tenantId);
  environmentId = await service.environment(tenantId);
  const declaration = { ...webService(environmentId), releaseId, reviewDestructive: true };
  specificationId = await declare(client, declaration);
  await plan(client, specificationId);
  await service.work();
  deployment = path.join(service.targets, tenantId, environmentId, "release", "deployment.yaml");
  await writeFile(deployment, (await readFile(deployment, "utf8")).replace("replicas: 2", "replicas: 9"));
});

const observed = (value: JsonValue, attribute = "spec.replicas", address = "deployment.yaml") =>
  create(ObservedValueSchema, { address, attribute, observed: fromJson(ValueSchema, value) });
const versions = async () =>
  (await client.listSpecifications({ environmentId, kind: SpecificationKind.RELEASE })).specifications;

test("a dry run says which parameters change and declares nothing", async () => {
  const answer = await client.adoptObserved({ specificationId, values: [observed(9)], dryRun: true });
  expect(answer).toMatchObject({ parameters: { replicas: 9 }, refusals: [] });
  expect(answer.specification).toBeUndefined();
  expect(await versions()).toHaveLength(1);
});

test("what is there is declared as the next version, which keeps the release and makes the drift disappear", async () => {
  const operator = service.as(tenantId, "operator");
  const { specification, parameters } = await operator.adoptObserved({ specificationId, values: [observed(9)] });
  expect(parameters).toEqual({ replicas: 9 });
  expect(specification).toMatchObject({
    kind: SpecificationKind.RELEASE,
    version: 2,
    state: SpecificationState.DECLARED,
    programVersion: "web-service@1.0.0",
    releaseId,
    reviewDestructive: true,
    declaredBy: "operator",
    parameters: { name: "shop", replicas: 9 },
  });

  await plan(client, specification?.specificationId ?? "", ProvisioningKind.RECONCILIATION, RunMode.APPLY);
  await service.work();
  const { specifications } = await client.inspectEnvironment({ environmentId });
  expect(specifications).toMatchObject([{ version: 2, drift: [], components: [{ replicas: 9 }] }]);
  expect(await readFile(deployment, "utf8")).toContain("replicas: 9");
});

test("asked again it returns the version that there is, with a key also after that was applied", async () => {
  const request = { specificationId, values: [observed(9)], idempotencyKey: "adopt-1" };
  const first = await client.adoptObserved(request);
  const { idempotencyKey: _, ...withoutKey } = request;
  const again = await client.adoptObserved(withoutKey);
  expect(again.specification?.specificationId).toBe(first.specification?.specificationId);
  await plan(client, first.specification?.specificationId ?? "", ProvisioningKind.RECONCILIATION, RunMode.APPLY);
  await service.work();
  expect(await client.adoptObserved(request)).toEqual(first);
  const gone = await refusalOf(client.adoptObserved(withoutKey));
  expect(gone.code).toBe(Code.FailedPrecondition);
  expect(gone.rawMessage).toContain(`DeploymentSpecification ${specificationId} is SUPERSEDED`);
  expect(await versions()).toHaveLength(2);
});

test("with one value that can't be adopted nothing is declared, and each refusal says why", async () => {
  const values = [
    observed(9),
    observed("ClusterIP", "spec.type", "service.yaml"),
    observed(null, "", "namespace.yaml"),
  ];
  const answer = await client.adoptObserved({ specificationId, values });
  expect(answer.specification).toBeUndefined();
  expect(answer.refusals).toMatchObject([
    { address: "service.yaml", attribute: "spec.type", reason: expect.stringContaining("nothing to adopt") },
    { address: "namespace.yaml", attribute: "", reason: expect.stringContaining("revert it") },
  ]);
  expect(await versions()).toHaveLength(1);
});

test("a newer version that isn't applied yet isn't superseded by what is there", async () => {
  await declare(client, { ...webService(environmentId, { version: "2.0.0" }), releaseId });
  const { code, rawMessage } = await refusalOf(
    client.adoptObserved({ specificationId, values: [observed(9)], dryRun: true }),
  );
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toBe("specificationId: is version 1, and version 2 is DECLARED: apply or withdraw that first");
});

test("sensitive parameters are masked in the answer, and sealed where they are kept", async () => {
  const folder = path.join(service.programs, "sealed", "1.0.0");
  await mkdir(path.join(folder, "templates"), { recursive: true });
  const parameter = "pin: { type: string, required: true, sensitive: true }";
  await writeFile(
    path.join(folder, "program.yaml"),
    `engine: manifests\ndescription: Sealed.\nparameters:\n  ${parameter}\n`,
  );
  await writeFile(path.join(folder, "templates", "lock.yaml"), "kind: Lock\nnumber: ${pin}\n");
  const declaration = { environmentId, kind: SpecificationKind.BASELINE, programVersion: "sealed@1.0.0" };
  const sealed = await declare(client, { ...declaration, parameters: { pin: "first-pin-1234" } });
  await plan(client, sealed, ProvisioningKind.BASELINE);
  await service.work();
  const lock = path.join(service.targets, tenantId, environmentId, "baseline", "lock.yaml");
  await writeFile(lock, (await readFile(lock, "utf8")).replace("first-pin-1234", "second-pin-5678"));

  const { specifications } = await client.inspectEnvironment({ environmentId });
  const [seen] = specifications.find(({ kind }) => kind === SpecificationKind.BASELINE)?.drift ?? [];
  expect(seen?.observed?.kind.value).toBe("(sensitive value)");
  const masked = await client.adoptObserved({
    specificationId: sealed,
    values: [observed("(sensitive value)", "number", "lock.yaml")],
  });
  expect(masked.refusals).toMatchObject([{ reason: expect.stringContaining("sensitive") }]);

  const told = await client.adoptObserved({
    specificationId: sealed,
    values: [observed("second-pin-5678", "number", "lock.yaml")],
  });
  expect(told.parameters).toEqual({ pin: "(sensitive value)" });
  expect(told.specification?.parameters).toEqual({ pin: "(sensitive value)" });
});

test("it isn't turned around while a run applies, nor when its program has gone", async () => {
  await service.database.$executeRaw`ALTER TABLE provisioning_run DISABLE TRIGGER USER`;
  await service.database.provisioningRun.updateMany({ where: { environmentId }, data: { state: "APPLYING" } });
  const busy = await refusalOf(client.adoptObserved({ specificationId, values: [observed(9)] }));
  await service.database.provisioningRun.updateMany({ where: { environmentId }, data: { state: "APPLIED" } });
  await service.database.$executeRaw`ALTER TABLE provisioning_run ENABLE TRIGGER USER`;
  expect(busy.code).toBe(Code.Unavailable);
  expect(busy.rawMessage).toContain("is applying: look again when it ended");

  await service.database.specification.update({
    where: { id: specificationId },
    data: { programVersion: "gone@1.0.0" },
  });
  const gone = await refusalOf(client.adoptObserved({ specificationId, values: [observed(9)] }));
  expect(gone.code).toBe(Code.InvalidArgument);
  expect(gone.rawMessage).toContain("specificationId: can't be looked at: INVALID_PROGRAM: program gone@1.0.0");
});

test("a fault of the service says nothing about the specification, so that it is asked again", async () => {
  await service.database.$executeRaw`ALTER TABLE engine_state_credential RENAME TO engine_state_credential_away`;
  const fault = await refusalOf(client.adoptObserved({ specificationId, values: [observed(9)] }));
  const { specifications } = await client.inspectEnvironment({ environmentId });
  await service.database.$executeRaw`ALTER TABLE engine_state_credential_away RENAME TO engine_state_credential`;
  expect(fault.code).toBe(Code.Internal);
  expect(specifications).toMatchObject([{ version: 1, failure: expect.stringContaining("the inspection failed") }]);
});

test("another tenant's specification, and bad values, are refused", async () => {
  const values = [observed(9)];
  expect((await refusalOf(service.as("intruder").adoptObserved({ specificationId, values }))).code).toBe(Code.NotFound);
  const bad = await refusalOf(client.adoptObserved({ specificationId, values: [] }));
  expect(bad.code).toBe(Code.InvalidArgument);
  expect(bad.rawMessage).toContain("values");
});
