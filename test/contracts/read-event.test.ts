import { expect, test } from "@jest/globals";
import { MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";
import { readEvent } from "@runtime-cloud/contracts/events/read-event";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { sandboxReleased } from "../eventing/control-plane-events.ts";

const SANDBOX = "01a22ce0-a7e2-73e1-a563-48d3ddbd6eb6";
const EVENT_OPTION = "option (runtimecloud.options.v1.event)";

test("tells an event by its name, with its message typed by that", () => {
  const event = readEvent(JSON.parse(JSON.stringify(sandboxReleased({ sandboxId: SANDBOX }))));
  if (event.name !== "SandboxReleased") throw new Error(`read as ${event.name ?? "unknown"}`);
  const { sandboxId }: { sandboxId: string } = event.message;
  expect(sandboxId).toBe(SANDBOX);
  expect(event.envelope.tenantid).toBe("tenant-a");
});

test("lets a topic that it doesn't know pass, without a name", () => {
  const envelope = { ...sandboxReleased(), type: "tooling.sandboxes.v9.sandbox-polished" };
  expect(readEvent(envelope)).toEqual({ name: undefined, envelope });
});

test.each([
  ["no envelope", { hello: "world" }],
  ["an event that breaks its rules", sandboxReleased({ sandboxId: "42" })],
])("refuses %s for good", (_what, data) => {
  expect(() => readEvent(data)).toThrow(MalformedEvent);
});

test("knows the events of every proto file that declares some", () => {
  const folder = fileURLToPath(new URL("../../proto/runtimecloud/events/v1/", import.meta.url));
  const declaring = readdirSync(folder).filter((name) =>
    readFileSync(join(folder, name), "utf8").includes(EVENT_OPTION),
  );
  const known = new Set(eventCatalogue.map(({ schema }) => `${basename(schema.file.name)}.proto`));
  expect([...known].sort()).toEqual(declaring.sort());
});
