import { expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const START_MS = 60_000;
const EX_CONFIG = 78;
const host = "services/runtime-cloud-host/src/main.ts";

test.each([
  [
    "a service without settings names every one that it needs",
    "services/execution-capacity/src/main.ts",
    {},
    ["DATABASE_URL", "REDIS_URL", "SUBSCRIBERS"],
  ],
  [
    "a service beyond loopback without an issuer names HOST",
    "services/runtime-environment/src/main.ts",
    {
      HOST: "0.0.0.0",
      DATABASE_URL: "postgres://127.0.0.1/none",
      REDIS_URL: "redis://127.0.0.1:1",
      SUBSCRIBERS: "RuntimeEnvironmentService",
    },
    ["HOST", "AUTH_ISSUER"],
  ],
  [
    "a host with one database for three services says which to set",
    host,
    { DATABASE_URL: "postgres://127.0.0.1/one" },
    ["IAC_PROVISIONING_DATABASE_URL", "DATABASE_ADMIN_URL"],
  ],
  ["a host whose admin port is no port names it", host, { ADMIN_PORT: "abc" }, ["ADMIN_PORT"]],
])(
  "%s, and ends with EX_CONFIG and without a stack",
  async (_promise, main, env, named) => {
    const { code, output } = await run(main, env);
    expect(code).toBe(EX_CONFIG);
    for (const variable of named) expect(output).toContain(variable);
    expect(output).not.toMatch(/\n\s+at /);
  },
  START_MS,
);

function run(main: string, env: NodeJS.ProcessEnv): Promise<{ code: unknown; output: string }> {
  return new Promise((resolve) => {
    const options = { cwd: root, env: { PATH: process.env.PATH, ...env }, timeout: START_MS };
    execFile(process.execPath, ["--import", "tsx", main], options, (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, output: stdout + stderr });
    });
  });
}
