import { parseEncryptionKeys, secretBox } from "@runtime-cloud/iac-provisioning/state/secret-box";
import { openState, sealState, stateHead } from "@runtime-cloud/iac-provisioning/state/state-version";
import { postgresStateStore } from "@runtime-cloud/iac-provisioning/state/postgres-state-store";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { TestDeployment } from "./deployment.ts";

/**
 * Edits the state of an environment's release, for resources that are nothing but what their state says: the engine then
 * finds them as if somebody had changed them by hand.
 */
export async function editState({ services, stage }: TestDeployment, environmentId: string, edit: Edit): Promise<void> {
  const { STATE_ENCRYPTION_KEYS = "" } = services.variables("iac-provisioning");
  const box = secretBox(parseEncryptionKeys(STATE_ENCRYPTION_KEYS));
  const store = postgresStateStore(stage.databases["iac-provisioning"]);
  const key = { tenantId: stage.tenantId, environmentId, kind: "RELEASE" };
  const lock = { id: uuidv7(), runId: uuidv7(), epoch: 0, info: "{}" };
  const holder = await store.lock(key, lock);
  if (holder) throw new Error(`run ${holder.runId} holds the state`);
  const current = await store.read(key);
  if (!current) throw new Error(`environment ${environmentId} has no state of a release`);

  const text = openState(box, key, current).toString("utf8");
  if (!text.includes(edit.from)) throw new Error(`the state doesn't say ${edit.from}: ${text}`);
  const { serial } = current;
  const content = Buffer.from(
    text.replaceAll(edit.from, edit.to).replace(`"serial": ${serial}`, `"serial": ${serial + 1}`),
  );
  const head = stateHead(content);
  if (head?.serial !== serial + 1) throw new Error("the state has its serial at another place");
  const result = await store.write(key, sealState(box, key, content, head), lock);
  if (result !== "written") throw new Error(`the state is ${result}`);
  await store.unlock(key, lock);
}

interface Edit {
  from: string;
  to: string;
}
