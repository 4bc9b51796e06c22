import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "@jest/globals";
import { leftWorkspaces, removeWorkspace } from "@runtime-cloud/iac-provisioning/engines/sandbox/left-workspaces";
import { makeWorkspace } from "@runtime-cloud/iac-provisioning/engines/sandbox/workspace-directory";

test("what a dead executor left is found by its name with the run's id, once neither it nor an engine of it lives", async () => {
  const root = await mkdtemp(path.join(tmpdir(), "left-work-"));
  const mine = await makeWorkspace(root, "run-1");
  const ended = spawn("true");
  await once(ended, "exit");
  const left = path.join(root, `terraform-run%2F2-${ended.pid}-1-AbCdEf`);
  await mkdir(path.join(left, "program"), { recursive: true });
  await mkdir(path.join(root, "something-else"));

  const engine = spawn("sleep", ["300"], { cwd: path.join(left, "program") });
  await once(engine, "spawn");
  expect(await leftWorkspaces(root)).toEqual([]);
  engine.kill("SIGKILL");
  await once(engine, "exit");
  expect(await leftWorkspaces(root)).toEqual([
    { holderId: "run/2", directory: left, programDirectory: path.join(left, "program") },
  ]);

  await removeWorkspace(left);
  await removeWorkspace(left);
  expect((await readdir(root)).sort()).toEqual(["something-else", path.basename(mine)]);
  expect((await stat(mine)).mode & 0o777).toBe(0o700);
  expect(await leftWorkspaces(path.join(root, "nowhere"))).toEqual([]);
  await rm(root, { recursive: true });
});
