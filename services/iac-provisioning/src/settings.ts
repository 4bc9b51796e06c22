import { fileURLToPath } from "node:url";
import { choice, list, port, secret, sharedSettings, text, wholeNumber } from "@runtime-cloud/service-kit/settings";
import type { z } from "zod";
import { passProblem } from "./engines/engine-environment.ts";
import { parseProgramVersion } from "./programs/program-version.ts";
import { parseEncryptionKeys } from "./state/secret-box.ts";

const DAY_SECONDS = 86_400;
const MAX_UID = 4_294_967_294;

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
  WORK_DIR: text(
    "where engines get their private work directories, and published programs lie at hand for them",
  ).default(inRepository(".data/engine-work")),
  PATH: text("the directories in which the engine's binary is looked for").default("/usr/local/bin:/usr/bin:/bin"),
  IAC_ENGINE_BIN: text("the OpenTofu or Terraform binary, instead of the one on the PATH").optional(),
  BASELINE_PROGRAM: text("the program that a new environment begins with, as name@version")
    .refine((value) => parseProgramVersion(value) !== undefined, {
      error: "is not name@version, like environment-baseline@1.0.0",
    })
    .default("environment-baseline@1.1.0"),
  PROGRAMS_PER_TENANT: wholeNumber("how many versions of programs a tenant may have published at once", {
    min: 1,
    max: 1_000_000,
  }).default(1_000),
  PROGRAM_CACHE_SIZE: wholeNumber(
    "how many published programs, of 16 MiB at most each, lie at hand in WORK_DIR; more than that only while they are in use",
    { min: 1, max: 100_000 },
  ).default(200),
  EXECUTOR_CONCURRENCY: wholeNumber("how many runs this process works on at once", { min: 1, max: 64 }).default(2),
  EXECUTOR_LEASE_SECONDS: wholeNumber("how long an executor may be silent before its run is taken from it", {
    min: 2,
    max: 600,
  }).default(15),
  PLAN_TTL_SECONDS: wholeNumber("how long a plan may wait for its approval and its apply", {
    min: 1,
    max: 30 * DAY_SECONDS,
  }).default(DAY_SECONDS),
  PLAN_TIMEOUT_SECONDS: wholeNumber("how long planning may take before it is ended, and its run FAILED", {
    min: 1,
    max: DAY_SECONDS,
  }).default(1_800),
  APPLY_TIMEOUT_SECONDS: wholeNumber("how long an apply may take before it is ended, whatever is done by then", {
    min: 1,
    max: 7 * DAY_SECONDS,
  }).default(14_400),
  CANCEL_GRACE_SECONDS: wholeNumber("how long an interrupted engine has to end by itself before it may be killed", {
    min: 0,
    max: 3_600,
  }).default(30),
  ENGINE_UID: wholeNumber(
    "the uid and gid that engines run as, which only a service that runs as root can give; unset, that is nobody's 65534 if it gets at WORK_DIR and the binary; 0 keeps root",
    { min: 0, max: MAX_UID },
  ).optional(),
  ENGINE_CPU_SECONDS: wholeNumber("the processor time that each process of an engine may use", {
    min: 1,
    max: 30 * DAY_SECONDS,
  }).default(3_600),
  ENGINE_MEMORY_MB: wholeNumber("the memory that each process of an engine may use", {
    min: 128,
    max: 1_048_576,
  }).default(4_096),
  ENGINE_FILE_MB: wholeNumber("the largest file that an engine may write, a provider's binary among them", {
    min: 1,
    max: 1_048_576,
  }).default(2_048),
  ENGINE_MAX_PROCESSES: wholeNumber(
    "how many processes and threads all engines together may have; holds where ENGINE_UID is another than the service's",
    { min: 32, max: 1_000_000 },
  ).default(4_096),
  ENGINE_ENV_PASS: list(
    "names of the service's environment variables that engines get, like a cloud's credentials and TF_CLI_CONFIG_FILE; no others reach them",
  )
    .check(({ value, issues }) => {
      const problem = value.map(passProblem).find((found) => found !== undefined);
      if (problem !== undefined) issues.push({ code: "custom", message: problem, input: value });
    })
    .optional(),
  STATE_BACKEND_PORT: port("the loopback port at which engines reach their state").default(0),
  STATE_ENCRYPTION_KEYS: secret(
    "id:base64[,id:base64…], as in k1:$(openssl rand -base64 32): the keys of stored plans, states and parameters; the first one encrypts",
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
