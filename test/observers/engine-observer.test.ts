import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  type AppliedSpecificationSchema,
  DriftSchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { DriftKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { engineObserver } from "@runtime-cloud/runtime-environment/observers/engine/engine-observer";
import { MAX_COMPONENTS } from "@runtime-cloud/runtime-environment/observers/observer";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { observerConformance } from "./conformance.ts";
import { type EngineSide, type Inspected, startEngineSide } from "./engine-side.ts";

type Applied = MessageInitShape<typeof AppliedSpecificationSchema>;

const web = { name: "web", version: "1.4.0", replicas: 3 };
const api = { name: "api", version: "2.0.1", replicas: 2, ready: 1 };
const release = (changes: Omit<Applied, "$typeName"> = {}) => ({
  specificationId: "0193f2a8-0000-7000-8000-000000000001",
  kind: SpecificationKind.RELEASE,
  version: 4,
  ...changes,
});
const baseline = (changes: Omit<Applied, "$typeName"> = {}) =>
  release({ kind: SpecificationKind.BASELINE, ...changes });

observerConformance("engine", {
  conditions: ["gone", "hanging", "half", "flooding"],
  async start(clock) {
    const side = await startEngineSide();
    const many = Array.from({ length: 2_000 }, (_, index) => ({ ...web, name: `web-${index}-${"x".repeat(110)}` }));
    const answers: Record<string, EngineSide["answer"]> = {
      well: () => ({ specifications: [baseline({ components: [web] }), release({ components: [api] })] }),
      gone: () => {
        throw new ConnectError(`127.0.0.1:${side.port} is lost`, Code.Internal);
      },
      hanging: () => new Promise<Inspected>(() => undefined),
      half: () => ({ specifications: [baseline({ components: [web] }), release({ failure: "the state is locked" })] }),
      flooding: () => ({ specifications: [baseline({ components: many }), release({ failure: "x".repeat(5_000) })] }),
    };
    return {
      observer: engineObserver({ provisioning: side.provisioning, clock }),
      expected: [
        { name: "web", componentVersion: "1.4.0", replicasDesired: 3, replicasReady: 3, health: "HEALTHY" },
        { name: "api", componentVersion: "2.0.1", replicasDesired: 2, replicasReady: 1, health: "DEGRADED" },
      ],
      turn(condition) {
        side.answer = answers[condition] ?? side.answer;
      },
      hidden: ["s3cr3t-token", "127.0.0.1"],
      close: () => side.close(),
    };
  },
});

let side: EngineSide;
beforeAll(async () => {
  side = await startEngineSide();
});
afterAll(() => side.close());

function look(specifications: readonly Applied[]) {
  side.answer = () => ({ specifications: [...specifications] });
  const observer = engineObserver({ provisioning: side.provisioning, clock: systemClock });
  const place = { id: "environment-1", tenantId: "tenant-1" };
  return observer.observe(place, { cause: deadlineCause("observation", uuidv7), timeoutMs: 10_000 });
}

test("says where components' health and version can be asked for, as the outputs name it", async () => {
  const healthUrl = "http://web.shop.svc/health";
  const components = [
    { ...web, healthUrl, versionUrl: "" },
    { ...api, healthUrl: 7 },
  ];
  const seen = await look([release({ components })]);
  expect(seen.components).toMatchObject([
    { name: "web", healthUrl, versionUrl: null },
    { name: "api", healthUrl: null, versionUrl: null },
  ]);
});

test("leaves out what is no component, and takes no more components than are kept", async () => {
  const odd: JsonObject[] = [
    { name: "" },
    { name: "a\u0000" },
    { name: "x".repeat(129) },
    { version: "1" },
    { ...web, replicas: -1 },
  ];
  const many = Array.from({ length: 600 }, (_, index) => ({ ...web, name: `web-${index}` }));
  expect((await look([release({ components: [...odd, api] })])).components).toMatchObject([{ name: "api" }]);
  expect((await look([release({ components: many })])).components).toHaveLength(MAX_COMPONENTS);
});

test("drift is what the engine lists, its values in a form that can be kept", async () => {
  const drift = [
    create(DriftSchema, {
      address: "terraform_data.app",
      kind: DriftKind.ATTRIBUTE_CHANGED,
      attribute: "input",
      applied: { kind: { case: "stringValue", value: "a\u0000b" } },
      observed: { kind: { case: "stringValue", value: `${"x".repeat(3_998)}😀` } },
    }),
    create(DriftSchema, { address: "terraform_data.odd", kind: DriftKind.UNSPECIFIED }),
  ];
  const [seen] = (await look([release({ drift })])).specifications ?? [];
  expect(seen?.drift).toEqual([
    {
      resource: "terraform_data.app",
      kind: "ATTRIBUTE_CHANGED",
      attribute: "input",
      declared: "a\uFFFDb",
      observed: `"${"x".repeat(3_998)}…`,
    },
  ]);
});

test("a specification of more resources than can be taken in couldn't be inspected, and none of it looks gone", async () => {
  const resources = Array.from({ length: 20_001 }, (_, index) => ({ address: `r${index}`, resourceType: "t" }));
  const { specifications } = await look([release({ resources }), baseline({ resources: resources.slice(0, 3) })]);
  expect(specifications).toMatchObject([
    { kind: "RELEASE", resources: [], failure: expect.stringContaining("more than 20000 resources") },
    { kind: "BASELINE", failure: null },
  ]);
});

test("an answer that is too late is told without the address that it was waited for from", async () => {
  side.answer = () => new Promise<Inspected>(() => undefined);
  const observer = engineObserver({ provisioning: side.provisioning, clock: systemClock });
  const look = { cause: deadlineCause("observation", uuidv7), timeoutMs: 200 };
  await expect(observer.observe({ id: "environment-1", tenantId: "tenant-1" }, look)).rejects.toThrow(
    /^IaCProvisioningService: no answer within 0.2 s$/,
  );
});

test("a service that isn't there, or whose connection breaks, is told without its address", async () => {
  const lost = await startEngineSide();
  const observer = engineObserver({ provisioning: lost.provisioning, clock: systemClock });
  const look = { cause: deadlineCause("observation", uuidv7), timeoutMs: 5_000 };
  const place = { id: "environment-1", tenantId: "tenant-1" };
  lost.answer = () => {
    throw new ConnectError("read ECONNRESET from 10.0.0.7:7101 and [fd00::7]:7101", Code.Unavailable);
  };
  await expect(observer.observe(place, look)).rejects.toThrow(
    /^IaCProvisioningService: read ECONNRESET from its address and its address$/,
  );
  await lost.down();
  await expect(observer.observe(place, look)).rejects.toThrow(/^IaCProvisioningService: the service can't be reached/);
  await lost.close();
});
