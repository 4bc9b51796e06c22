import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { QuotaFailureSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import {
  declare,
  type IacService,
  plan,
  type ProvisioningClient,
  refusalOf,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";
import { archiveOf } from "../../_support/program-archive.ts";

let service: IacService;
beforeAll(async () => {
  service = await startIacProvisioning({ PROGRAMS_PER_TENANT: "2" });
});
afterAll(() => service.close());

const archive = (content: string) =>
  archiveOf({
    "program.yaml": "engine: manifests\ndescription: Says something.\n",
    "templates/said.yaml": `kind: ConfigMap\nsaid: ${content}\n`,
  });

async function publish(client: ProvisioningClient, programVersion: string, content = "hello") {
  const { program } = await client.publishProgram({ programVersion, archive: await archive(content) });
  return program?.digest ?? "";
}

const declaration = (environmentId: string, programVersion: string) => ({
  environmentId,
  kind: SpecificationKind.RELEASE,
  programVersion,
});

const own = async (client: ProvisioningClient) =>
  (await client.listPrograms({ pageSize: 200 })).programs.flatMap(({ installed, programVersion }) =>
    installed ? [] : [programVersion],
  );

test("an unpublished program is listed and declared no more; repeating it changes nothing", async () => {
  const client = service.as("t1");
  const programVersion = "greeter@1.0.0";
  const digest = await publish(client, programVersion);
  expect(await own(client)).toEqual([programVersion]);

  const first = await client.unpublishProgram({ programVersion });
  expect(first.digest).toBe(digest);
  expect(await client.unpublishProgram({ programVersion })).toEqual(first);
  expect(await own(client)).toEqual([]);
  const refusal = await refusalOf(
    client.declareSpecification(declaration(await service.environment("t1"), programVersion)),
  );
  expect(refusal).toMatchObject({ code: Code.InvalidArgument });
  expect(refusal.rawMessage).toContain("greeter@1.0.0 is no program that is there");
  const row = await service.database.publishedProgram.findFirstOrThrow({ where: { tenantId: "t1", name: "greeter" } });
  expect(row.archive).toBeNull();
});

test("its content may be published again, and no other as that version", async () => {
  const client = service.as("t2");
  const programVersion = "greeter@1.0.0";
  const digest = await publish(client, programVersion);
  await client.unpublishProgram({ programVersion });
  const other = await refusalOf(publish(client, programVersion, "other"));
  expect(other).toMatchObject({ code: Code.AlreadyExists });
  expect(other.rawMessage).toContain(`was published with other content, ${digest}`);

  expect(await publish(client, programVersion)).toBe(digest);
  expect(await own(client)).toEqual([programVersion]);
  const runId = await plan(client, await declare(client, declaration(await service.environment("t2"), programVersion)));
  await service.work();
  expect(await service.state(runId)).toBe("APPLIED");
});

test("a program that a specification needs stays, and the refusal says which, until it is torn down", async () => {
  const client = service.as("t3");
  const programVersion = "greeter@1.0.0";
  await publish(client, programVersion);
  const environmentId = await service.environment("t3");
  const specificationId = await declare(client, declaration(environmentId, programVersion));
  const refused = async () => {
    const refusal = await refusalOf(client.unpublishProgram({ programVersion }));
    expect(refusal).toMatchObject({ code: Code.FailedPrecondition });
    return refusal.rawMessage;
  };
  expect(await refused()).toContain(
    `it is named by specification ${specificationId} (DECLARED, version 1 of RELEASE in environment ${environmentId}); `,
  );
  await plan(client, specificationId);
  await service.work();
  expect(await refused()).toContain(`specification ${specificationId} (APPLIED, `);

  await plan(client, specificationId, ProvisioningKind.TEARDOWN, RunMode.DESTROY);
  await service.work();
  await client.unpublishProgram({ programVersion });
  expect(await own(client)).toEqual([]);
});

test("a version that is superseded or withdrawn needs its program no more", async () => {
  const client = service.as("t4");
  const programVersion = "greeter@1.0.0";
  await publish(client, programVersion);
  const environmentId = await service.environment("t4");
  await declare(client, declaration(environmentId, programVersion));
  await declare(client, webService(environmentId));
  const specificationId = await declare(client, declaration(await service.environment("t4"), programVersion));
  await client.withdrawSpecification({ specificationId });
  await client.unpublishProgram({ programVersion });
  expect(await own(client)).toEqual([]);
});

test("of a declaration and an unpublishing at once, one is refused", async () => {
  const client = service.as("t5");
  for (const round of [1, 2, 3, 4]) {
    const programVersion = `greeter@${round}.0.0`;
    await publish(client, programVersion);
    const environmentId = await service.environment("t5");
    const [declared, unpublished] = await Promise.allSettled([
      client.declareSpecification(declaration(environmentId, programVersion)),
      client.unpublishProgram({ programVersion }),
    ]);
    expect([declared.status, unpublished.status].sort()).toEqual(["fulfilled", "rejected"]);
    if (declared.status === "rejected") continue;
    await client.withdrawSpecification({ specificationId: declared.value.specification?.specificationId ?? "" });
    await client.unpublishProgram({ programVersion });
  }
});

test.each([
  ["another tenant's", "theirs@1.0.0"],
  ["the installation's", "web-service@1.0.0"],
  ["nobody's", "nothing@1.0.0"],
])("%s program is not the tenant's to unpublish", async (_, programVersion) => {
  await publish(service.as("t6"), "theirs@1.0.0");
  const refusal = await refusalOf(service.as("t7").unpublishProgram({ programVersion }));
  expect(refusal).toMatchObject({ code: Code.NotFound });
  expect(refusal.rawMessage).toMatch(/is no program that this tenant published; .* in the service's PROGRAMS_DIR$/);
});

test("what is no name@version is refused by its field", async () => {
  const refusal = await refusalOf(service.as("t1").unpublishProgram({ programVersion: "a--b@1.0.0" }));
  expect(refusal).toMatchObject({ code: Code.InvalidArgument });
  expect(refusal.rawMessage).toContain("programVersion: is not name@version");
});

test("a tenant publishes up to the limit, whoever comes at once, and has room again once it unpublished one", async () => {
  const client = service.as("t8");
  const results = await Promise.allSettled(["a", "b", "c", "d"].map((name) => publish(client, `${name}@1.0.0`)));
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  const refusal = await refusalOf(publish(client, "e@1.0.0"));
  expect(refusal).toMatchObject({ code: Code.ResourceExhausted });
  expect(refusal.rawMessage).toBe(
    "tenant t8 has published as many programs as PROGRAMS_PER_TENANT allows, 2: unpublish versions that no " +
      "specification needs (UnpublishProgram), or have the limit raised",
  );
  expect(refusal.findDetails(QuotaFailureSchema)[0]?.violations).toMatchObject([{ subject: "tenant:t8" }]);

  const [there = ""] = await own(client);
  await publish(client, there);
  await publish(service.as("t9"), "e@1.0.0");
  await client.unpublishProgram({ programVersion: there });
  await publish(client, "e@1.0.0");
});
