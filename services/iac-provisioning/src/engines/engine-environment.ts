/** Variables of the service's own that engines get. */
export interface PassedEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  /** The values of those whose name says that they are secret. */
  readonly secrets: readonly string[];
  /** Names that were to be passed and aren't set. */
  readonly missing: readonly string[];
}

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/**
 * What would change which code runs, what the CLI is told to do or where it keeps things, what it logs, or what this
 * service keeps for itself.
 */
const REFUSED =
  /^(?:PATH|HOME|TMPDIR|ENV|BASH_ENV|LD_.*|DYLD_.*|TF_CLI_ARGS.*|TF_VAR_.*|TF_LOG.*|TF_HTTP_.*|TF_WORKSPACE|TF_DATA_DIR|TF_INPUT|TF_IN_AUTOMATION|RUNTIME_CLOUD_.*|STATE_ENCRYPTION_KEYS|(?:QUEUE_)?DATABASE_URL|REDIS_URL|SERVICE_TOKEN.*)$/i;
const SOUNDS_SECRET = /TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|KEY|AUTH|SAS|DSN|CONNECTION_STRING/i;

/** What is wrong with a name in ENGINE_ENV_PASS; undefined when it may be passed. */
export function passProblem(name: string): string | undefined {
  if (!VARIABLE_NAME.test(name)) return `names ${JSON.stringify(name)}, which is no variable's name`;
  if (REFUSED.test(name)) return `names ${name}, which engines get from this service or not at all`;
  return undefined;
}

/** The named variables, as far as they are set: everything else of `environment` is kept from engines. */
export function passEnvironment(names: readonly string[], environment: NodeJS.ProcessEnv): PassedEnvironment {
  const set = names.flatMap((name) => {
    const value = environment[name];
    return value === undefined || value === "" ? [] : [[name, value] as const];
  });
  const variables = Object.fromEntries(set);
  return {
    variables,
    secrets: set.filter(([name]) => SOUNDS_SECRET.test(name)).map(([, value]) => value),
    missing: names.filter((name) => !(name in variables)),
  };
}
