import { expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { fromSetUp } from "../_support/environment.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

test.each([
  [[], "A command is missing."],
  [["destroy"], "Unknown command: destroy"],
  [["deploy", "now"], "Too many arguments: deploy now"],
  [["status", "--service", "billing"], "Unknown service: billing"],
  [["new"], "The new migration's NAME is missing."],
  [["new", "../up"], "Not a migration's name: ../up"],
  [["deploy", "--force"], "Unknown option '--force'"],
])("migrate %j says what is wrong and how it is used", (args, complaint) => {
  const { status, stderr } = migrate(args);
  expect(status).toBe(2);
  expect(stderr).toContain(complaint);
  expect(stderr).toContain("Usage: npm run migrate -- deploy");
});

test.each([[["--help"]], [["-h"]], [["new", "--help"]]])("migrate %j prints how it is used and succeeds", (args) => {
  const { status, stdout, stderr } = migrate(args);
  expect(stdout).toMatch(/^Usage: npm run migrate -- deploy/);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});

test("status shows each migration of a service with its state", () => {
  const { status, stdout } = migrate(["status", "--service", "execution-capacity"], {
    DATABASE_URL: fromSetUp("TEST_DATABASE_ADMIN_URL"),
  });
  expect(status).toBe(0);
  expect(stdout).toMatch(/^execution-capacity\n {2}PENDING {2}\d{14}_\w+$/m);
});

function migrate(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const command = ["--import", "tsx", "tools/migrate.ts", ...args];
  return spawnSync(process.execPath, command, { cwd: root, encoding: "utf8", env: { ...process.env, ...env } });
}
