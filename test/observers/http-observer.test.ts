import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { createServer } from "node:net";
import { once } from "node:events";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { httpObserver } from "@runtime-cloud/runtime-environment/observers/http/http-observer";
import { type Observation, ObservationFailed } from "@runtime-cloud/runtime-environment/observers/observer";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { type HttpSide, says, silence, startHttpSide } from "./http-side.ts";

let side: HttpSide;
beforeEach(async () => {
  side = await startHttpSide();
});
afterEach(() => side.close());

interface Named {
  name: string;
  healthUrl?: string;
  versionUrl?: string;
  versionField?: string;
}

type Applied = Parameters<typeof httpObserver>[0]["applied"];

function look(components: readonly Named[], more: { timeoutMs?: number; lookMs?: number; applied?: Applied } = {}) {
  const { timeoutMs = 2_000, lookMs = 10_000, applied = [] } = more;
  const settings = {
    components: components.map((each) => ({ healthUrl: "", versionUrl: "", versionField: "", ...each })),
    timeoutMs,
  };
  const observer = httpObserver({ settings, applied, clock: systemClock, rule: { loopback: "allow" } });
  const place = { id: "environment-1", tenantId: "tenant-1" };
  return observer.observe(place, { cause: deadlineCause("observation", uuidv7), timeoutMs: lookMs });
}

const healthOf = async (looking: Promise<Observation>) => (await looking).components.map(({ health }) => health);

test.each([
  [200, "HEALTHY"],
  [204, "HEALTHY"],
  [304, "DEGRADED"],
  [401, "DEGRADED"],
  [404, "DEGRADED"],
  [500, "DEGRADED"],
  [502, "DEGRADED"],
  [503, "PROGRESSING"],
])("a health URL that answers %i says %s", async (status, health) => {
  side.routes.set("/health", says("", status));
  const seen = await look([{ name: "web", healthUrl: `${side.url}/health` }]);
  expect(seen).toMatchObject({ components: [{ name: "web", componentVersion: "", health }] });
  expect(seen.failure).toBeUndefined();
});

test("without a health URL a component is as well as its version URL answers", async () => {
  side.routes.set("/version", says({ build: { version: "7.1.0" } }));
  side.routes.set("/broken", says("", 500));
  const seen = await look([
    { name: "web", versionUrl: `${side.url}/version`, versionField: "build.version" },
    { name: "api", versionUrl: `${side.url}/broken` },
  ]);
  expect(seen.components).toMatchObject([
    { name: "web", componentVersion: "7.1.0", health: "HEALTHY" },
    { name: "api", componentVersion: "", health: "DEGRADED" },
  ]);
});

test("a component that isn't well needn't answer for its version, and the one that was known is kept", async () => {
  side.routes.set("/health", says("", 503));
  side.routes.set("/version", says("", 503));
  const urls = { healthUrl: `${side.url}/health`, versionUrl: `${side.url}/version` };
  const seen = await look([{ name: "web", ...urls }]);
  expect(seen).toMatchObject({ components: [{ health: "PROGRESSING" }], unseen: ["web"] });
  expect(seen.failure).toBeUndefined();
});

test("a well component that names no version is a failure that says where it was looked for", async () => {
  side.routes.set("/health", says(""));
  side.routes.set("/version", says({ name: "web" }));
  const urls = { healthUrl: `${side.url}/health`, versionUrl: `${side.url}/version` };
  const seen = await look([{ name: "web", ...urls, versionField: "build.id" }]);
  expect(seen).toMatchObject({ components: [{ health: "HEALTHY" }], unseen: ["web"] });
  expect(seen.failure).toBe("web: version: no text of 1 to 128 characters at build.id");
});

test("a component that refuses connections isn't seen, and the others are", async () => {
  const closed = createServer().listen(0, "127.0.0.1");
  await once(closed, "listening");
  const address = closed.address();
  const port = typeof address === "object" && address ? address.port : 0;
  closed.close();
  await once(closed, "close");
  side.routes.set("/health", says(""));
  const seen = await look([
    { name: "web", healthUrl: `${side.url}/health` },
    { name: "api", healthUrl: `http://127.0.0.1:${port}/` },
  ]);
  expect(seen).toMatchObject({ components: [{ name: "web" }], unseen: ["api"] });
  expect(seen.failure).toBe("api: health: connection refused");
});

test("components that hang don't take the time of those that are asked after them", async () => {
  side.routes.set("/hangs", silence);
  side.routes.set("/health", says(""));
  const hanging = Array.from({ length: 16 }, (_, index) => ({ name: `h${index}`, healthUrl: `${side.url}/hangs` }));
  const well = Array.from({ length: 4 }, (_, index) => ({ name: `w${index}`, healthUrl: `${side.url}/health` }));
  const seen = await look([...hanging, ...well], { lookMs: 4_000 });
  expect(seen.components.map(({ name }) => name)).toEqual(well.map(({ name }) => name));
  expect(seen.failure).toContain("and 11 more");
});

test("the applied components that name a URL are asked beside those of the settings, which come first", async () => {
  side.routes.set("/applied", says("", 500));
  side.routes.set("/health", says(""));
  const applied = [
    { name: "web", healthUrl: `${side.url}/applied`, versionUrl: null },
    { name: "api", healthUrl: `${side.url}/health`, versionUrl: null },
    { name: "db", healthUrl: null, versionUrl: null },
  ];
  const { components } = await look([{ name: "web", healthUrl: `${side.url}/health` }], { applied });
  expect(components).toMatchObject([
    { name: "web", health: "HEALTHY" },
    { name: "api", health: "HEALTHY" },
  ]);
});

test("an applied URL that can't be asked is a failure of its component", async () => {
  const applied = [{ name: "web", healthUrl: "file:///etc/passwd", versionUrl: null }];
  const looking = look([], { applied });
  await expect(looking).rejects.toThrow("web: health: the URL is neither http:// nor https://");
  await expect(looking).rejects.toBeInstanceOf(ObservationFailed);
});

test("a proxy of the environment is not used, and no connection stays open", async () => {
  const given = process.env;
  process.env = { ...given, HTTP_PROXY: "http://127.0.0.1:9", http_proxy: "http://127.0.0.1:9" };
  try {
    side.routes.set("/health", says("ok"));
    expect(await healthOf(look([{ name: "web", healthUrl: `${side.url}/health` }]))).toEqual(["HEALTHY"]);
  } finally {
    process.env = given;
  }
  await side.idle();
});
