import type { Engine } from "@runtime-cloud/iac-provisioning/engines/engine";

/** An engine whose plans wait until they are let through; everything else is the engine's own. */
export interface GatedEngine {
  engine: Engine;
  /** Resolves when a plan is at the gate. */
  reached: Promise<void>;
  open(): void;
}

export function gatedEngine(engine: Engine): GatedEngine {
  let reach: () => void = () => undefined;
  let open: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    reached,
    open,
    engine: {
      ...engine,
      async *plan(job) {
        reach();
        await opened;
        return yield* engine.plan(job);
      },
    },
  };
}
