import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import type {
  CreateSuppressionRuleRequestSchema,
  SuppressionRule,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import { DriftKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  type EnvironmentClient,
  type EnvironmentService,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

const DAY_MS = 86_400_000;

let service: EnvironmentService;
let tenant: EnvironmentClient;
let environmentId: string;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  const tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
});

type Request = MessageInitShape<typeof CreateSuppressionRuleRequestSchema>;

const inMs = (ms: number) => timestampFromDate(new Date(Date.now() + ms));
const request = (changes: Partial<Omit<Request, "$typeName">> = {}) => ({
  environmentId,
  resourcePattern: "aws_vm.*",
  attributePattern: "tags.*",
  reason: "the tagging service writes them",
  until: inMs(DAY_MS),
  ...changes,
});
const silence = async (changes: Partial<Omit<Request, "$typeName">> = {}): Promise<SuppressionRule> => {
  const { rule } = await tenant.createSuppressionRule(request(changes));
  if (!rule) throw new Error("no rule");
  return rule;
};
const rules = async (ended = false) => (await tenant.listSuppressionRules({ environmentId, ended })).rules;

test.each<[string, Partial<Omit<Request, "$typeName">>, string]>([
  ["without a reason", { reason: "" }, "reason"],
  ["with a blank reason", { reason: "  " }, "reason"],
  ["without an end", { until: undefined }, "until"],
  ["that has ended", { until: inMs(-1_000) }, "until"],
  ["for more than a year", { until: inMs(366 * DAY_MS) }, "until"],
  ["of no kind", { kinds: [DriftKind.UNSPECIFIED] }, "kinds[0]"],
  ["that silences all", { resourcePattern: "", attributePattern: "" }, "resourcePattern"],
  ["that silences all by stars", { resourcePattern: "*", attributePattern: "**" }, "resourcePattern"],
])("a rule %s is refused by field", async (_, changes, field) => {
  const { code, rawMessage } = await refusalOf(tenant.createSuppressionRule(request(changes)));
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toContain(`${field}: `);
  expect(await rules(true)).toEqual([]);
});

test("the refusal of a rule that silences all says how to narrow it", async () => {
  const { rawMessage } = await refusalOf(silence({ resourcePattern: "*", attributePattern: "" }));
  expect(rawMessage).toContain("name kinds, or give resourcePattern or attributePattern more than `*`");
});

test("a rule is ended once, and another tenant has neither the rule nor the environment", async () => {
  const { ruleId } = await silence();
  const stranger = service.as(`tenant-${uuidv7()}`);
  expect((await refusalOf(stranger.endSuppressionRule({ ruleId }))).code).toBe(Code.NotFound);
  expect((await refusalOf(stranger.createSuppressionRule(request()))).code).toBe(Code.NotFound);
  expect((await refusalOf(stranger.listSuppressionRules({ environmentId }))).code).toBe(Code.NotFound);
  await tenant.endSuppressionRule({ ruleId });
  const { code, rawMessage } = await refusalOf(tenant.endSuppressionRule({ ruleId }));
  expect(code).toBe(Code.FailedPrecondition);
  expect(rawMessage).toContain(`SuppressionRule ${ruleId} is ENDED, which is final: end refused`);
});

test("a key makes one rule, a retired environment takes none, and a hundred are the most", async () => {
  const asked = request({ idempotencyKey: "rule-1" });
  const first = await tenant.createSuppressionRule(asked);
  expect(await tenant.createSuppressionRule(asked)).toEqual(first);
  expect(await rules()).toHaveLength(1);
  const stored = await service.database.suppressionRule.findFirstOrThrow({ where: { environmentId } });
  const others = Array.from({ length: 99 }, () => ({ ...stored, id: uuidv7() }));
  await service.database.suppressionRule.createMany({ data: others });
  const { rawMessage } = await refusalOf(silence());
  expect(rawMessage).toMatch(/^environmentId: has 100 suppression rules.*EndSuppressionRule/);

  await tenant.retireEnvironment({ environmentId });
  expect((await refusalOf(silence())).code).toBe(Code.FailedPrecondition);
});

test("rules are listed newest first, by page", async () => {
  const made = [await silence(), await silence({ reason: "second" }), await silence({ reason: "third" })];
  const first = await tenant.listSuppressionRules({ environmentId, pageSize: 2 });
  const { nextPageToken: pageToken } = first;
  const rest = await tenant.listSuppressionRules({ environmentId, pageSize: 2, pageToken });
  const listed = [...first.rules, ...rest.rules].map(({ ruleId }) => ruleId);
  expect(listed).toEqual(made.map(({ ruleId }) => ruleId).reverse());
  expect(rest.nextPageToken).toBe("");
  const { code } = await refusalOf(tenant.listSuppressionRules({ environmentId, ended: true, pageToken }));
  expect(code).toBe(Code.InvalidArgument);
});
