/** Tells the story line by line, and how long each step took. */
export interface Narrator {
  chapter(title: string): void;
  /** Runs a step and prints it; a step whose promise doesn't hold fails the story. */
  step<T>(promise: string, work: () => Promise<T>): Promise<T>;
}

export class StoryFailed extends Error {
  override readonly name = "StoryFailed";
}

export function narrator(print: (line: string) => void, now: () => number): Narrator {
  return {
    chapter: (title) => print(`\n${title}`),
    async step(promise, work) {
      const start = now();
      const took = () => `${((now() - start) / 1_000).toFixed(2).padStart(6)} s`;
      try {
        const result = await work();
        print(`  ok   ${took()}  ${promise}`);
        return result;
      } catch (error) {
        print(`  FAIL ${took()}  ${promise}`);
        const reason = error instanceof Error ? error.message : String(error);
        throw new StoryFailed(`${promise}: ${reason}`, { cause: error });
      }
    },
  };
}

/** Fails the step unless `holds`. */
export function expect(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new StoryFailed(otherwise);
}
