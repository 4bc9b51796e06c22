import { fileURLToPath } from "node:url";
import { choice, port, secret, sharedSettings, text, wholeNumber } from "@runtime-cloud/service-kit/settings";
import type { z } from "zod";
import { parseProgramVersion } from "./programs/program-version.ts";
import { parseEncryptionKeys } from "./state/secret-box.ts";

const DAY_SECONDS = 86_400;

/** The settings of IaCProvisioningService, beside those that every service has. */
export const settings = sharedSettings.safeExtend({
  PORT: port("the port of the API: Connect, gRPC and gRPC-Web").default(7101),
  ADMIN_PORT: port("the port of the admin server: health, metrics, dashboards").default(7111),
  ROLE: choice("what this process does: api answers and executor works on runs", ["all", "api", "executor"]).default(
    "all",
  ),
  PROGRAMS_DIR: text("the directory of the programs: <name>/<version>/program.yaml").default(
    inRepository("examples/programs"),
  ),
  TARGETS_DIR: text("where the manifests engine keeps the environments' files").default(inRepository(".data/targets")),
  WORK_DIR: text("where engines get their private work directories").default(inRepository(".data/engine-work")),
  PATH: text("the directories in which the engine's binary is looked for").default("/usr/local/bin:/usr/bin:/bin"),
  IAC_ENGINE_BIN: text("the OpenTofu or Terraform binary, instead of the one on the PATH").optional(),
  BASELINE_PROGRAM: text("the program that a new environment begins with, as name@version")
    .refine((value) => parseProgramVersion(value) !== undefined, {
      error: "is not name@version, like environment-baseline@1.0.0",
    })
    .default("environment-baseline@1.0.0"),
  EXECUTOR_CONCURRENCY: wholeNumber("how many runs this process works on at once", { min: 1, max: 64 }).default(2),
  PLAN_TTL_SECONDS: wholeNumber("how long a plan may wait for its approval and its apply", {
    min: 1,
    max: 30 * DAY_SECONDS,
  }).default(DAY_SECONDS),
  CANCEL_GRACE_SECONDS: wholeNumber("how long an interrupted engine has to end by itself before it may be killed", {
    min: 0,
    max: 3_600,
  }).default(30),
  STATE_BACKEND_PORT: port("the loopback port at which engines reach their state").default(0),
  STATE_ENCRYPTION_KEYS: secret(
    "id:base64[,id:base64…], the keys of stored plans, states and parameters; the first one encrypts",
  ).check((context) => {
    const problem = problemOf(context.value);
    if (problem !== undefined) context.issues.push({ code: "custom", message: problem, input: context.value });
  }),
});

export type Settings = Readonly<z.output<typeof settings>>;

function problemOf(keys: string): string | undefined {
  try {
    parseEncryptionKeys(keys);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : "cannot be read";
  }
}

function inRepository(path: string): string {
  return fileURLToPath(new URL(`../../../${path}`, import.meta.url));
}
