import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

import { breaking } from "../../tools/contracts/breaking.ts";
import { isNewer } from "../../tools/contracts/newer.ts";
import { publish, PublicationRefused } from "../../tools/contracts/publish.ts";
import { lastPublished, markPublished } from "../../tools/contracts/published.ts";

const PACK_MS = 120_000;
const BUF_MS = 120_000;
const TOOLING = "proto/runtimecloud/events/v1/tooling.proto";
const repository = fileURLToPath(new URL("../..", import.meta.url));

const manifest = z.object({ dependencies: z.record(z.string(), z.string()) });

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runtime-cloud-test-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each([
  ["that can't be made", "/proc/nowhere/deeper", /--out: \/proc\/nowhere can't be made/],
  ["that is a file", fileURLToPath(import.meta.url), /--out: .* is a file; name a folder/],
])("a folder to pack into %s is refused at once", (_what, out, problem) => {
  const { status, stderr } = contracts(["pack", "--out", out]);
  expect(status).toBe(2);
  expect(stderr).toMatch(problem);
  expect(stderr).not.toMatch(/\n\s+at /);
});

test(
  "what is packed is imported by plain Node, with no dependencies but those that it names",
  () => {
    const { status, stdout, stderr } = contracts(["pack", "--out", folder]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const installed = join(folder, "node_modules/@runtime-cloud/contracts");
    mkdirSync(installed, { recursive: true });
    execFileSync("tar", ["-xzf", stdout.trim(), "-C", installed, "--strip-components", "1"]);
    const { dependencies } = manifest.parse(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")));
    for (const name of Object.keys(dependencies)) {
      mkdirSync(join(folder, "node_modules", name, ".."), { recursive: true });
      symlinkSync(join(repository, "node_modules", name), join(folder, "node_modules", name));
    }

    writeFileSync(join(folder, "reader.mjs"), READER);
    expect(execFileSync(process.execPath, ["reader.mjs"], { cwd: folder, encoding: "utf8" })).toBe(
      "QuotaChanged 5 capacity.quotas.v1.quota-changed runtimecloud.capacity.v1.ExecutionCapacityService\n",
    );
    expect(readdirSync(installed).sort()).toEqual([
      "README.md",
      "catalogue.json",
      "dist",
      "package.json",
      "proto",
      "schemas",
    ]);
  },
  PACK_MS,
);

describe("what is published", () => {
  beforeEach(() => {
    cpSync(join(repository, "proto"), join(folder, "proto"), { recursive: true });
    cpSync(join(repository, "buf.yaml"), join(folder, "buf.yaml"));
    setVersion("1.2.0");
  });

  test(
    "may be added to",
    async () => {
      const published = await markPublished(folder, "1.2.0");
      change("string tenant_id = 2", "string mood = 99;\n  string tenant_id = 2");
      expect(await breaking(folder, published)).toBeUndefined();
    },
    BUF_MS,
  );

  test(
    "keeps its fields and their names",
    async () => {
      const published = await markPublished(folder, "1.2.0");
      change("string tenant_id = 2", "string owner_id = 2");
      expect(await breaking(folder, published)).toMatch(
        /differs from version 1\.2\.0:[^]*tenant_id[^]*owner_id[^]*…v2/,
      );
      setVersion("1.3.0");
      await expect(publish(folder, folder)).rejects.toThrow(PublicationRefused);
    },
    BUF_MS,
  );

  test(
    "keeps its topics, producers and consumers, and what may be absent",
    async () => {
      change("sandbox-released", "sandbox-freed");
      change('producer: "', 'producer: "Former');
      change("consumers: [", 'consumers: ["AuditService", ');
      change("[(buf.validate.field).required = true]", "");
      const problems = await breaking(folder, await markPublished(folder, "1.2.0"));
      expect(problems).toContain("SandboxReleased moved from the topic tooling.sandboxes.v1.sandbox-freed to");
      expect(problems).toMatch(/SandboxReleased is announced by \w+ and no longer by Former/);
      expect(problems).toContain("SandboxReleased is no longer delivered to AuditService");
      expect(problems).toMatch(/SandboxReleased\.\w+ became required/);
    },
    BUF_MS,
  );

  test(
    "is the last version alone, and each only once",
    async () => {
      await markPublished(folder, "1.1.9");
      expect(await markPublished(folder, "1.2.0")).toEqual(await lastPublished(folder));
      expect(readdirSync(join(folder, "libs/contracts/published"))).toEqual(["1.2.0.binpb"]);
      await expect(publish(folder, folder)).rejects.toThrow(/Version 1\.2\.0 is published, .*npm version/);
      setVersion("1.1.10");
      await expect(publish(folder, folder)).rejects.toThrow(/Version 1\.2\.0 is published/);
    },
    BUF_MS,
  );

  function setVersion(version: string): void {
    mkdirSync(join(folder, "libs/contracts"), { recursive: true });
    const own = { name: "@runtime-cloud/contracts", version, description: "The contract." };
    writeFileSync(join(folder, "libs/contracts/package.json"), JSON.stringify(own));
  }

  function change(text: string, to: string): void {
    const before = readFileSync(join(folder, TOOLING), "utf8");
    expect(before).toContain(text);
    writeFileSync(join(folder, TOOLING), before.replace(text, to));
  }
});

test.each([
  ["1.2.0", "1.1.9", true],
  ["1.10.0", "1.9.0", true],
  ["1.2.0", "1.2.0", false],
  ["1.2.0", "2.0.0", false],
])("%s is newer than %s: %s", (version, other, newer) => {
  expect(isNewer(version, other)).toBe(newer);
});

test.each([
  [["upload"], "Unknown command: upload"],
  [["pack", "--force"], "Unknown option '--force'"],
])("contracts %j says what is wrong and how it is used", (args, complaint) => {
  const { status, stderr } = contracts(args);
  expect(status).toBe(2);
  expect(stderr).toContain(complaint);
  expect(stderr).toContain("Usage: npm run contracts -- pack");
});

function contracts(args: readonly string[]) {
  const command = ["--import", "tsx", "tools/contracts.ts", ...args];
  return spawnSync(process.execPath, command, { cwd: repository, encoding: "utf8" });
}

const READER = `
import { readFileSync } from "node:fs";
import { envelop } from "@runtime-cloud/contracts/events/cloud-event";
import { readEvent } from "@runtime-cloud/contracts/events/read-event";
import { QuotaChangedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/capacity_pb";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";

const id = "01a22ce0-a7e2-73e1-a563-48d3ddbd6eb6";
const subject = { id, tenantId: "tenant-a" };
const meta = { id, at: new Date(0), subject, aggregateVersion: 1, cause: { correlationId: id } };
const event = readEvent(envelop(QuotaChangedSchema, { quotaId: id, tenantId: "tenant-a", concurrentRuns: 5 }, meta));
const schema = new URL(import.meta.resolve("@runtime-cloud/contracts/schemas/quota-changed.json"));
JSON.parse(readFileSync(schema, "utf8"));
console.log(event.name, event.message.concurrentRuns, event.envelope.type, ExecutionCapacityService.typeName);
`;
