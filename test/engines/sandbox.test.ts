import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, mkdtemp, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { checkInstallation } from "@runtime-cloud/iac-provisioning/check-installation";
import { passEnvironment, passProblem } from "@runtime-cloud/iac-provisioning/engines/engine-environment";
import { chooseEngineUser } from "@runtime-cloud/iac-provisioning/engines/sandbox/sandbox-user";
import { terraformEngine } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-engine";
import { readWorkspaceFile } from "@runtime-cloud/iac-provisioning/engines/sandbox/workspace-file";
import { openSandbox } from "@runtime-cloud/iac-provisioning/open-sandbox";
import { settings } from "@runtime-cloud/iac-provisioning/settings";
import { readConfig } from "@runtime-cloud/service-kit/config";
import type { EngineBench } from "./engine-bench.ts";
import { engineIn, NOBODY, openSandboxBench, SEARCH_PATH, type SandboxBench } from "./sandbox-bench.ts";

let sandbox: SandboxBench;
let bench: EngineBench;
beforeAll(async () => {
  sandbox = await openSandboxBench();
  bench = sandbox.bench;
});
afterAll(() => sandbox.close());

describe("a user of their own", () => {
  test("engines run as it, in directories of its own; the service reads their plan, and they nothing of its", async () => {
    const secret = path.join(bench.directory, "secret");
    await writeFile(secret, "of the service", { mode: 0o600 });
    const program = await sandbox.shellProgram(
      "who",
      `echo uid=$(id -u) gid=$(id -g) groups=$(id -G); stat -c 'mode=%a owner=%u %n' . "$HOME" "$TMPDIR"
       cat ${secret} || echo unreadable; ls ${bench.directory} ${sandbox.workRoot} .. || echo unlistable`,
    );
    const { outcome, said } = await sandbox.apply(program, engineIn({ user: NOBODY }));

    expect(outcome.result).toBe("applied");
    expect(said).toContain("uid=65534 gid=65534 groups=65534");
    expect(said.match(/^mode=700 owner=65534 /gm)).toHaveLength(3);
    expect(said).toMatch(/^unreadable$/m);
    expect(said).not.toContain("of the service");
    expect(said.match(/cannot open directory/g)).toHaveLength(3);
  });

  test("nothing that an engine puts in the place of its files is read as one of them", async () => {
    const directory = await mkdtemp(path.join(bench.directory, "left-"));
    const secret = path.join(bench.directory, "linked-to");
    await writeFile(secret, "of the service");
    await writeFile(path.join(directory, "plain"), "of the engine");
    await symlink(secret, path.join(directory, "link"));
    await link(secret, path.join(directory, "hard-link"));
    execFileSync("mkfifo", [path.join(directory, "pipe")]);

    expect((await readWorkspaceFile(path.join(directory, "plain")))?.toString()).toBe("of the engine");
    for (const name of ["link", "hard-link", "pipe", "nothing", "nothing/at/all"])
      expect(await readWorkspaceFile(path.join(directory, name))).toBeUndefined();
  });

  test("ENGINE_UID must be able to get at what engines need; unset, that decides, and says so", async () => {
    const closed = path.join(bench.directory, "closed");
    await mkdir(closed, { mode: 0o700 });
    const inside = path.join(closed, "work");

    await expect(chooseEngineUser(1_234, [inside])).rejects.toThrow(`can't get past ${closed}: open it`);
    expect(await chooseEngineUser(undefined, [inside])).toEqual({
      warning: expect.stringContaining(`engines run as root, for user 65534 can't get past ${closed}`),
    });
    expect(await chooseEngineUser(undefined, [sandbox.workRoot])).toEqual({ user: NOBODY });
    expect(await chooseEngineUser(1_234, [sandbox.workRoot])).toEqual({ user: { uid: 1_234, gid: 1_234 } });
    expect(await chooseEngineUser(0, [inside])).toEqual({});
  });
});

describe("the settings", () => {
  const required = {
    DATABASE_URL: "postgres://localhost:1/nowhere",
    REDIS_URL: "redis://localhost:1",
    SUBSCRIBERS: "IaCProvisioningService",
    STATE_ENCRYPTION_KEYS: `test:${randomBytes(32).toString("base64")}`,
    PATH: SEARCH_PATH,
  };

  test("confine engines as they say, and open the work directory to their user without showing what is in it", async () => {
    const folder = await mkdtemp(path.join(bench.directory, "settings-"));
    await chmod(folder, 0o711);
    const directories = { WORK_DIR: path.join(folder, "work"), TARGETS_DIR: path.join(folder, "targets") };
    const config = readConfig(settings, {
      ...required,
      ...directories,
      ENGINE_UID: "65534",
      ENGINE_CPU_SECONDS: "77",
      ENGINE_FILE_MB: "5",
    });
    await checkInstallation(config);
    const { sandbox: opened, warnings } = await openSandbox(config);

    expect(warnings).toEqual([]);
    expect(opened).toMatchObject({ user: NOBODY, limits: { cpuSeconds: 77, fileMb: 5 } });
    expect(opened.limits?.flags).toEqual(
      expect.arrayContaining(["--cpu=77:79", "--fsize=5242880", "--core=0", expect.stringMatching(/^--nproc=\d+$/)]),
    );
    expect((await stat(directories.WORK_DIR)).mode & 0o777).toBe(0o711);
    expect((await stat(directories.TARGETS_DIR)).mode & 0o777).toBe(0o700);
  });

  test("an ENGINE_UID that can't get at the work directory is refused at start, with the way out", async () => {
    const closed = await mkdtemp(path.join(bench.directory, "closed-"));
    const directories = { WORK_DIR: path.join(closed, "work"), TARGETS_DIR: path.join(closed, "targets") };
    const config = readConfig(settings, { ...required, ...directories, ENGINE_UID: "65534" });
    await expect(checkInstallation(config)).rejects.toMatchObject({
      problems: [expect.stringContaining(`ENGINE_UID="65534" can't get past ${closed}: open it (chmod o+x)`)],
    });
    const { warnings } = await openSandbox(readConfig(settings, { ...required, ...directories }));
    expect(warnings).toEqual([expect.stringContaining("engines run as root")]);
  });

  test("ENGINE_ENV_PASS is refused when it names what engines must not get", () => {
    const named = { ...required, ENGINE_ENV_PASS: "AWS_REGION,TF_CLI_ARGS_plan" };
    expect(() => readConfig(settings, named)).toThrow(
      /ENGINE_ENV_PASS="\S+" names TF_CLI_ARGS_plan, which engines get/,
    );
    const fine = readConfig(settings, { ...required, ENGINE_ENV_PASS: "AWS_REGION, TF_CLI_CONFIG_FILE" });
    expect(fine.ENGINE_ENV_PASS).toEqual(["AWS_REGION", "TF_CLI_CONFIG_FILE"]);
  });
});

describe("the service's environment", () => {
  test("nothing of it reaches an engine but what ENGINE_ENV_PASS names, and no secret of that is shown", async () => {
    const given = { CLOUD_REGION: "moon-1", CLOUD_API_TOKEN: "c4nary-t0ken", CLOUD_OTHER: "x", TF_VAR_a: "b" };
    const passed = passEnvironment(["CLOUD_REGION", "CLOUD_API_TOKEN", "CLOUD_ABSENT"], given);
    expect(passed).toMatchObject({ secrets: ["c4nary-t0ken"], missing: ["CLOUD_ABSENT"] });

    process.env["TF_LOG"] = "trace";
    try {
      const program = await sandbox.shellProgram("environment", "env | sort; ls -A $HOME");
      const extra = { extraEnvironment: passed.variables, environmentSecrets: passed.secrets };
      const { said, everything } = await sandbox.apply(program, terraformEngine({ searchPath: SEARCH_PATH, ...extra }));
      expect(said).toContain("CLOUD_REGION=moon-1");
      expect(said).toContain("CLOUD_API_TOKEN=(sensitive");
      expect(everything).not.toContain("c4nary");
      const names = said.match(/^[A-Z_]+(?==)/gm)?.filter((name) => !/^(?:TF_HTTP_|CLOUD_)/.test(name)) ?? [];
      expect(new Set(names)).toEqual(
        new Set([
          ...["CHECKPOINT_DISABLE", "HOME", "LANG", "PATH", "PWD", "RUNTIME_CLOUD_ENGINE", "SHLVL"],
          ...["TF_INPUT", "TF_IN_AUTOMATION", "TMPDIR", "_"].filter((name) => names.includes(name)),
        ]),
      );
    } finally {
      delete process.env["TF_LOG"];
    }
  });

  test.each(["TF_CLI_ARGS_plan", "PATH", "LD_PRELOAD", "TF_VAR_x", "TF_LOG", "DATABASE_URL", "STATE_ENCRYPTION_KEYS"])(
    "%s can't be passed",
    (name) => expect(passProblem(name)).toBe(`names ${name}, which engines get from this service or not at all`),
  );

  test("a cloud's variables can be passed", () => {
    expect(["AWS_SECRET_ACCESS_KEY", "TF_CLI_CONFIG_FILE", "https_proxy"].map(passProblem)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(passProblem("no name")).toContain("no variable's name");
  });
});
