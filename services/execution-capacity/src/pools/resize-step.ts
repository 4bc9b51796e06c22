import type { ConnectError } from "@connectrpc/connect";
import type { ProvisionedSize } from "./pool-provisioned.ts";

/** How far IaCProvisioningService has come with the wanted size of a pool. */
export type ResizeStep =
  /** It plans a run; null: it didn't say which. */
  | { kind: "planned"; runId: string | null }
  /** The run hasn't ended, or the event that tells the size is on its way. */
  | { kind: "under-way" }
  | { kind: "applied"; size: ProvisionedSize }
  /** The pool keeps the size that it has. */
  | { kind: "failed"; reason: string }
  | { kind: "unanswered"; error: ConnectError };
