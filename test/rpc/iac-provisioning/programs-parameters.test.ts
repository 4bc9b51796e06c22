import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { BadRequestSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { type IacService, refusalOf, startIacProvisioning, webService } from "../../_support/iac-provisioning.ts";

let service: IacService;
let environmentId: string;
beforeAll(async () => {
  service = await startIacProvisioning();
  environmentId = await service.environment("t1");
});
afterAll(() => service.close());

async function violations(parameters: JsonObject) {
  const refusal = await refusalOf(service.as("t1").declareSpecification(webService(environmentId, parameters)));
  expect(refusal.code).toBe(Code.InvalidArgument);
  return refusal.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
}

const nested = (depth: number): JsonValue => (depth === 0 ? "deep" : { a: nested(depth - 1) });

test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
  "%s is refused, as a number and within one",
  async (number) => {
    const description = `holds ${number}, which is no number that JSON has`;
    expect(await violations({ replicas: number })).toMatchObject([{ field: "parameters.replicas", description }]);
    expect(await violations({ settings: { a: [{ b: number }] } })).toMatchObject([
      { field: "parameters.settings", description },
    ]);
  },
);

test("a value may be nested 32 deep and no deeper", async () => {
  const client = service.as("t1");
  const { specification } = await client.declareSpecification(webService(environmentId, { settings: nested(32) }));
  expect(specification?.parameters).toMatchObject({ settings: nested(32) });
  for (const depth of [33, 45]) {
    expect(await violations({ settings: nested(depth), port: "x" })).toMatchObject([
      { field: "parameters.settings", description: "is nested more than 32 deep" },
    ]);
  }
});

test("parameters are refused that are too large in all, by the largest", async () => {
  const settings = { text: "x".repeat(200 * 1024) };
  expect(await violations({ settings, image: "y".repeat(60 * 1024) })).toMatchObject([
    {
      field: "parameters.settings",
      description: expect.stringMatching(
        /^has \d+ of the \d+ bytes that the parameters have as JSON; at most 262144 are allowed$/,
      ),
    },
  ]);
});

test("names are refused that are none, and repeated only so far", async () => {
  const description = expect.stringMatching(
    /^is not a parameter of the program; it takes name, environment, version, /,
  );
  expect(await violations({ "settings.a": 1, "": 2, ["n".repeat(5000)]: 3, constructor: 4 })).toMatchObject([
    { field: 'parameters["settings.a"]', description },
    { field: 'parameters[""]', description },
    { field: `parameters["${"n".repeat(64)}…"]`, description },
    { field: "parameters.constructor", description },
  ]);
  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`p${index}`, index]));
  expect(await violations(many)).toHaveLength(16);
});

test("a member called __proto__ is refused, of the parameters and within one", async () => {
  const object: JsonObject = { polluted: "yes" };
  const smuggled = Object.fromEntries([["__proto__", object]]);
  expect(await violations({ settings: { a: [smuggled] } })).toMatchObject([
    { field: "parameters.settings", description: "holds a member called __proto__, which is not allowed" },
  ]);
  expect(await violations(smuggled)).toMatchObject([
    { field: "parameters.__proto__", description: "is no name of a parameter" },
  ]);
});
