import type { StateAccess } from "../engine.ts";

/** Where provisioners and providers find ordinary tools. */
const TOOL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * The CLI's whole environment, built from nothing: what this process has in its own (a `TF_CLI_ARGS_plan`, a
 * credential) reaches the CLI only if the deployment lists it in `extra`. The state's address and credential go this
 * way because the CLI writes neither into its plan files, so a plan can be applied under another credential.
 */
export function terraformEnvironment(
  home: string,
  state: StateAccess,
  extra: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    ...extra,
    PATH: TOOL_PATH,
    HOME: home,
    TMPDIR: home,
    LANG: "C.UTF-8",
    TF_IN_AUTOMATION: "1",
    TF_INPUT: "0",
    CHECKPOINT_DISABLE: "1",
    TF_HTTP_ADDRESS: state.address,
    TF_HTTP_LOCK_ADDRESS: state.address,
    TF_HTTP_UNLOCK_ADDRESS: state.address,
    TF_HTTP_USERNAME: state.username,
    TF_HTTP_PASSWORD: state.password,
  };
}
