import { TransformStream } from "node:stream/web";
import type { EngineEvent } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import type { Engine } from "@runtime-cloud/iac-provisioning/engines/engine";

/** An engine that says what a test has it say before it plans. */
export interface TalkingEngine {
  engine: Engine;
  /** Resolves once the executor has taken all of it in. */
  say(...lines: string[]): Promise<void>;
  tell(event: EngineEvent): Promise<void>;
  /** Lets the engine go on and plan. */
  end(): Promise<void>;
}

export function talkingEngine(engine: Engine): TalkingEngine {
  const { readable, writable } = new TransformStream<EngineEvent, EngineEvent>();
  const speech = writable.getWriter();
  return {
    async say(...lines) {
      for (const line of lines) await speech.write({ type: "log", level: "info", line });
    },
    tell: (event) => speech.write(event),
    end: () => speech.close(),
    engine: {
      ...engine,
      async *plan(job) {
        for await (const event of readable) yield event;
        return yield* engine.plan(job);
      },
    },
  };
}
