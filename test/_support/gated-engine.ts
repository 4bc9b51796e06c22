import type { Engine, EngineSignals } from "@runtime-cloud/iac-provisioning/engines/engine";

/** An engine that waits until it is let through; everything else is the engine's own. */
export interface GatedEngine {
  engine: Engine;
  /** Resolves when a job is at the gate. */
  reached: Promise<void>;
  open(): void;
}

/** Its plans wait. With `minds` the gate opens also when the job is told so; without, such an engine is deaf until it is let through. */
export function gatedEngine(engine: Engine, minds?: keyof EngineSignals): GatedEngine {
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
        await Promise.race(minds ? [opened, aborted(job.signals[minds])] : [opened]);
        return yield* engine.plan(job);
      },
    },
  };
}

/** An engine whose applies come to a halt after their first resource, until they are told to end. */
export function haltingEngine(engine: Engine, minds: keyof EngineSignals): GatedEngine {
  let reach: () => void = () => undefined;
  let open: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    reached,
    open,
    engine: {
      ...engine,
      async *apply(job) {
        const apply = engine.apply(job);
        for (;;) {
          const step = await apply.next();
          if (step.done) return step.value;
          yield step.value;
          if (step.value.type !== "resource-applied") continue;
          reach();
          await Promise.race([opened, aborted(job.signals[minds])]);
        }
      },
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
