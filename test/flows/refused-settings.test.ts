import { expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { serviceProgram } from "@runtime-cloud/runtime-cloud-host/service-program";

const root = fileURLToPath(new URL("../..", import.meta.url));
const START_MS = 120_000;
const EX_CONFIG = 78;
const host = ["--import", "tsx", "services/runtime-cloud-host/src/main.ts"];

test.each([
  [
    "a service without settings names every one that it needs",
    serviceProgram("execution-capacity"),
    {},
    ["DATABASE_URL", "REDIS_URL", "SUBSCRIBERS"],
  ],
  [
    "a service beyond loopback without an issuer names HOST",
    serviceProgram("runtime-environment"),
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
  async (_promise, program, env, named) => {
    const { code, output } = await run(program, env);
    expect(code).toBe(EX_CONFIG);
    for (const variable of named) expect(output).toContain(variable);
    expect(output).not.toMatch(/\n\s+at /);
  },
  START_MS,
);

function run(program: readonly string[], env: NodeJS.ProcessEnv): Promise<{ code: unknown; output: string }> {
  return new Promise((resolve) => {
    const options = { cwd: root, env: { PATH: process.env.PATH, ...env }, timeout: START_MS };
    execFile(process.execPath, [...program], options, (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, output: stdout + stderr });
    });
  });
}
