import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Code, type ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import {
  ProvisioningKind,
  RunMode,
  RunState,
  SpecificationKind,
  SpecificationState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { writeSecretProgram } from "../../_support/iac-programs.ts";
import {
  declare,
  type IacService,
  plan,
  refusalOf,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";

let service: IacService;
beforeAll(async () => {
  service = await startIacProvisioning();
});
afterAll(() => service.close());

const fields = (refusal: ConnectError) =>
  refusal.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations.map(({ field }) => field));

test("numbers versions from 1 and announces each", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const first = await client.declareSpecification(webService(environmentId));
  expect(first.specification).toMatchObject({
    version: 1,
    state: SpecificationState.DECLARED,
    declaredBy: "alice",
    parameters: { name: "shop", replicas: 2, port: 8080 },
  });
  const second = await client.declareSpecification(webService(environmentId, { replicas: 5 }));
  expect(second.specification?.version).toBe(2);
  const announced = await service.announced(second.specification?.specificationId ?? "");
  expect(announced).toMatchObject([
    {
      event: "SpecificationDeclared",
      data: { version: 2, kind: "SPECIFICATION_KIND_RELEASE", programVersion: "web-service@1.0.0" },
    },
  ]);
});

test("returns the version that says the same already", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const first = await client.declareSpecification(webService(environmentId));
  const again = await client.declareSpecification(webService(environmentId, { replicas: 2 }));
  expect(again).toEqual(first);
  const releaseId = uuidv7();
  const release = await client.declareSpecification({ ...webService(environmentId), releaseId });
  expect(release.specification).toMatchObject({
    version: 2,
    releaseId,
    contentDigest: first.specification?.contentDigest,
  });
});

test("gives versions declared at once different numbers", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const declared = await Promise.all(
    [1, 2, 3, 4].map((replicas) => client.declareSpecification(webService(environmentId, { replicas }))),
  );
  expect(declared.map(({ specification }) => specification?.version).sort()).toEqual([1, 2, 3, 4]);
});

test("supersedes older versions that were never applied, and the runs that wait for them", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const older = await declare(client, webService(environmentId));
  const provisioningRunId = await plan(client, older);
  await declare(client, webService(environmentId, { replicas: 3 }));

  expect((await client.getSpecification({ specificationId: older })).specification?.state).toBe(
    SpecificationState.SUPERSEDED,
  );
  const { run } = await client.getProvisioningRun({ provisioningRunId });
  expect(run).toMatchObject({
    state: RunState.SUPERSEDED,
    reason: "SUPERSEDED: version 2 of the RELEASE specification took its place",
  });
  expect((await service.announced(provisioningRunId)).map(({ event }) => event)).toEqual(["ProvisioningFailed"]);
});

test("names every parameter that is wrong", async () => {
  const environmentId = await service.environment("t1");
  const declaration = {
    ...webService(environmentId),
    parameters: { name: 7, environment: "e", replica: 3, replicas: 1.5 },
  };
  const refusal = await refusalOf(service.as("t1").declareSpecification(declaration));
  expect(refusal.code).toBe(Code.InvalidArgument);
  expect(fields(refusal).sort()).toEqual([
    "parameters.name",
    "parameters.replica",
    "parameters.replicas",
    "parameters.version",
  ]);
});

test("says that a program isn't there, and that an environment isn't known", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const missing = await refusalOf(
    client.declareSpecification({ ...webService(environmentId), programVersion: "nothing@1.0.0" }),
  );
  expect(fields(missing)).toEqual(["programVersion"]);
  const unknown = await refusalOf(client.declareSpecification(webService("nowhere")));
  expect(unknown).toMatchObject({ code: Code.NotFound });
  expect(unknown.rawMessage).toBe("environment nowhere isn't known here; it arrives with EnvironmentCreated");
});

test("shows another tenant nothing", async () => {
  const environmentId = await service.environment("t1");
  const specificationId = await declare(service.as("t1"), webService(environmentId));
  const other = service.as("t2");
  const unknownId = uuidv7();
  const [foreign, unknown] = await Promise.all(
    [specificationId, unknownId].map((id) => refusalOf(other.getSpecification({ specificationId: id }))),
  );
  expect(foreign).toMatchObject({ code: Code.NotFound });
  expect(foreign?.rawMessage.replace(specificationId, "")).toBe(unknown?.rawMessage.replace(unknownId, ""));
  expect((await refusalOf(other.declareSpecification(webService(environmentId)))).code).toBe(Code.NotFound);
  expect((await refusalOf(other.withdrawSpecification({ specificationId }))).code).toBe(Code.NotFound);
  expect((await refusalOf(other.inspectEnvironment({ environmentId }))).code).toBe(Code.NotFound);
  expect((await other.listSpecifications({ environmentId })).specifications).toEqual([]);
});

test("masks a sensitive parameter wherever it is shown, and keeps it sealed", async () => {
  const environmentId = await service.environment("t1");
  const programVersion = await writeSecretProgram(service.programs);
  const client = service.as("t1");
  const parameters = { password: "hunter2-canary" };
  const { specification } = await client.declareSpecification({
    ...webService(environmentId),
    programVersion,
    parameters,
  });
  expect(specification?.parameters).toEqual({ password: "(sensitive value)", size: 1 });

  const runId = await plan(client, specification?.specificationId ?? "");
  await service.work();
  expect(await service.state(runId)).toBe("APPLIED");
  const [found] = await service.database.$queryRaw<{ everywhere: string }[]>`
    SELECT concat((SELECT json_agg(s) FROM specification s), (SELECT json_agg(r) FROM provisioning_run r),
                  (SELECT json_agg(c) FROM planned_change c), (SELECT json_agg(l) FROM run_log_line l),
                  (SELECT json_agg(e) FROM receipt_entry e), (SELECT json_agg(o) FROM outbox_message o),
                  (SELECT json_agg(v) FROM engine_state_version v)) AS everywhere`;
  expect(found?.everywhere).not.toContain("hunter2-canary");
  expect(found?.everywhere).not.toContain(Buffer.from("hunter2-canary").toString("hex"));
});

test("withdraws a version that was never applied, once", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const specificationId = await declare(client, webService(environmentId));
  const runId = await plan(client, specificationId);
  const { specification } = await client.withdrawSpecification({ specificationId, idempotencyKey: "w1" });
  expect(specification?.state).toBe(SpecificationState.WITHDRAWN);
  expect(await service.state(runId)).toBe("SUPERSEDED");
  expect((await client.withdrawSpecification({ specificationId, idempotencyKey: "w1" })).specification).toEqual(
    specification,
  );
  expect((await refusalOf(client.withdrawSpecification({ specificationId }))).code).toBe(Code.FailedPrecondition);
  const refused = await refusalOf(
    client.planProvisioning({ specificationId, kind: ProvisioningKind.PROMOTION, mode: RunMode.APPLY }),
  );
  expect(refused).toMatchObject({ code: Code.FailedPrecondition });
  expect(refused.rawMessage).toContain("is WITHDRAWN, which is final: plan refused");
});

/** A version whose only run stopped halfway, by the resource that always fails. */
async function partlyApplied(environmentId: string) {
  const client = service.as("t1");
  const broken = { ...webService(environmentId), programVersion: "broken-service@1.0.0", parameters: {} };
  const specificationId = await declare(client, broken);
  const runId = await plan(client, specificationId);
  await service.work();
  expect(await service.state(runId)).toBe("PARTIALLY_APPLIED");
  return { client, specificationId, runId };
}

test("refuses to withdraw a version that was applied in part, until its teardown withdraws it", async () => {
  const { client, specificationId, runId } = await partlyApplied(await service.environment("t1"));
  const waiting = await plan(client, specificationId);
  const refused = await refusalOf(client.withdrawSpecification({ specificationId }));
  expect(refused.code).toBe(Code.FailedPrecondition);
  expect(refused.rawMessage).toBe(
    `DeploymentSpecification ${specificationId} is DECLARED: withdraw refused (changed-the-environment): ` +
      `run ${runId} of it changed the environment, so plan a TEARDOWN of it or declare a newer version`,
  );
  expect(refused.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "CHANGED_THE_ENVIRONMENT" }]);
  expect(await service.state(waiting)).toBe("QUEUED");

  await client.cancelProvisioning({ provisioningRunId: waiting });
  const teardown = await plan(client, specificationId, ProvisioningKind.TEARDOWN, RunMode.DESTROY);
  await service.work();
  expect(await service.state(teardown)).toBe("APPLIED");
  const { specification } = await client.getSpecification({ specificationId });
  expect(specification?.state).toBe(SpecificationState.WITHDRAWN);
});

test("a newer version takes the place of one that was applied in part", async () => {
  const environmentId = await service.environment("t1");
  const { client, specificationId } = await partlyApplied(environmentId);
  await declare(client, webService(environmentId));
  const { specification } = await client.getSpecification({ specificationId });
  expect(specification?.state).toBe(SpecificationState.SUPERSEDED);
});

test("withdraws a version whose run ended before anything was attempted", async () => {
  const client = service.as("t1");
  const specificationId = await declare(client, webService(await service.environment("t1")));
  const runId = await plan(client, specificationId);
  await client.cancelProvisioning({ provisioningRunId: runId });
  await service.database.receiptEntry.create({
    data: { runId, ordinal: 0, address: "deployment.yaml", outcome: "NOT_ATTEMPTED", actions: ["CREATE"] },
  });
  const { specification } = await client.withdrawSpecification({ specificationId });
  expect(specification?.state).toBe(SpecificationState.WITHDRAWN);
});

test("lists versions newest first, page by page, under one filter", async () => {
  const environmentId = await service.environment("t3");
  const client = service.as("t3");
  for (const replicas of [1, 2, 3, 4, 5]) await declare(client, webService(environmentId, { replicas }));
  const kind = SpecificationKind.RELEASE;
  const first = await client.listSpecifications({ environmentId, kind, pageSize: 2 });
  const second = await client.listSpecifications({ environmentId, kind, pageSize: 2, pageToken: first.nextPageToken });
  const third = await client.listSpecifications({ environmentId, kind, pageSize: 2, pageToken: second.nextPageToken });
  const pages = [first, second, third].map(({ specifications }) => specifications.map(({ version }) => version));
  expect(pages).toEqual([[5, 4], [3, 2], [1]]);
  expect(third.nextPageToken).toBe("");
  const mixed = await refusalOf(
    client.listSpecifications({ environmentId, pageSize: 2, pageToken: first.nextPageToken }),
  );
  expect(fields(mixed)).toEqual(["pageToken"]);
});
