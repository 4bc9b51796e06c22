import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "@jest/globals";
import { ObserversSchema } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/observers_pb";
import { labelSelectorProblem } from "@runtime-cloud/runtime-environment/observers/kubernetes/label-selector";
import {
  observerSettings,
  observersMessage,
  observersOf,
} from "@runtime-cloud/runtime-environment/observers/observer-settings";
import { observerViolations } from "@runtime-cloud/runtime-environment/observers/observer-violations";

type Init = MessageInitShape<typeof ObserversSchema>;

const settingsOf = (observers: Init) => observersOf(create(ObserversSchema, observers));
const violationsOf = (observers: Init) =>
  observerViolations(settingsOf(observers), { clusters: ["shop", "edge"], rule: { loopback: "deny" } });
const web = { name: "web", healthUrl: "https://web.shop.example/health", versionUrl: "http://10.0.0.7:8080/version" };

const all: Init = {
  http: { components: [{ ...web, versionField: "build.version" }], timeout: durationFromMs(2_500) },
  kubernetes: { cluster: "shop", namespace: "shop-test", labelSelector: "app.kubernetes.io/part-of=shop" },
  push: { agents: ["agent-1", "agent-2"] },
};

test("what was configured is shown again as it was, by way of the column", () => {
  expect(violationsOf(all)).toEqual([]);
  const column: unknown = JSON.parse(JSON.stringify(settingsOf(all)));
  expect(create(ObserversSchema, observersMessage(observerSettings(column)))).toEqual(create(ObserversSchema, all));
});

test("an observer that isn't configured isn't there, and one without more to say is", () => {
  expect(observerSettings({})).toEqual({});
  expect(settingsOf({ http: {}, push: {} })).toEqual({
    http: { components: [], timeoutMs: 5_000 },
    push: { agents: [] },
  });
});

test("a column that nobody here wrote is refused", () => {
  expect(() => observerSettings({ http: { components: "all" } })).toThrow();
});

test.each([
  ["healthUrl", "web.example/health", "is no URL"],
  ["healthUrl", "ftp://web.example/", "is neither http:// nor https://"],
  ["versionUrl", "https://user:secret@web.example/", "holds credentials, which are neither kept nor sent"],
  ["versionUrl", "https://web.example/#version", "has a fragment, which is never sent: leave it out"],
  ["healthUrl", "http://169.254.169.254/latest", "leads to a metadata service, which is never asked"],
  ["healthUrl", "http://[fe80::1]/", "leads to a link-local address, which is never asked"],
  ["healthUrl", "http://0.0.0.0/", "leads to an unspecified address, which is never asked"],
  ["healthUrl", "http://224.0.0.1/", "leads to a multicast address, which is never asked"],
  ["healthUrl", "http://localhost:81/", "leads to this machine itself, which is never asked"],
])("refuses a %s of %s", (field, url, description) => {
  const components = [web, { ...web, name: "api", [field]: url }];
  expect(violationsOf({ http: { components } })).toEqual([
    { field: `observers.http.components[1].${field}`, description },
  ]);
});

test("refuses components of one name, without a URL, and with a version's field that leads nowhere", () => {
  const components = [web, web, { name: "api" }, { name: "db", healthUrl: web.healthUrl, versionField: "a..b" }];
  expect(violationsOf({ http: { components } })).toEqual([
    { field: "observers.http.components[1].name", description: 'names "web" a second time' },
    {
      field: "observers.http.components[2]",
      description: "names neither healthUrl nor versionUrl: there is nothing to ask",
    },
    { field: "observers.http.components[3].versionField", description: "is set without versionUrl" },
    {
      field: "observers.http.components[3].versionField",
      description: "has an empty step: write it as in build.version",
    },
  ]);
});

test("refuses a time for one request that is too long, and an agent that is named twice", () => {
  const observers = { http: { timeout: durationFromMs(30_001) }, push: { agents: ["agent-1", "agent-1"] } };
  expect(violationsOf(observers)).toEqual([
    { field: "observers.http.timeout", description: "must be 1 ms to 30 s; 0 takes the default" },
    { field: "observers.push.agents[1]", description: 'names "agent-1" a second time' },
  ]);
});

test("refuses a cluster that the installation doesn't know, and a selector that doesn't parse", () => {
  const kubernetes = { cluster: "other", namespace: "shop", labelSelector: "app=shop,tier in (web" };
  expect(violationsOf({ kubernetes })).toMatchObject([
    {
      field: "observers.kubernetes.cluster",
      description: 'names "other", which this installation doesn\'t know: it knows shop, edge',
    },
    { field: "observers.kubernetes.labelSelector", description: expect.stringContaining('"tier in (web" is no') },
  ]);
});

test.each([
  "",
  "app=shop",
  "app==shop, tier != web",
  "app.kubernetes.io/part-of=shop",
  "tier in (web, api),env notin (test)",
  "partition,!legacy",
  "app=",
])("takes the label selector %j", (selector) => {
  expect(labelSelectorProblem(selector)).toBeUndefined();
});

test.each([
  "=shop",
  "app=a b",
  "app in",
  "app in (a",
  "app=shop,",
  "UPPER.example/x/y=1",
  `${"a".repeat(64)}=1`,
  "a b",
])("refuses the label selector %j", (selector) => {
  expect(labelSelectorProblem(selector)).toMatch(/^".*" is no requirement on labels: write key=value/);
});
