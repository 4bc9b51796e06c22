/** A way to take a slot and to give it back. */
export interface LeasePath {
  readonly name: string;
  /** Its version and the settings that it is measured with. */
  readonly about: string;
  /** Takes one slot for a new holder, once it is safe. `caller` counts from 0; each has one call under way at most. */
  acquire(caller: number): Promise<Held>;
  /** Throws unless just so many were taken and given back since the last check, and nothing is held now. */
  check(pairs: number): Promise<void>;
  close(): Promise<void>;
}

/** A slot that somebody holds. */
export interface Held {
  /** Later grants have higher ones; undefined: the path hands out none. */
  readonly token: bigint | undefined;
  release(): Promise<void>;
}

/** Opens paths, one after the other, and closes them after the work. */
export async function withLeasePaths<Path extends { close(): Promise<void> }, Result>(
  openers: readonly (() => Promise<Path>)[],
  work: (paths: readonly Path[]) => Promise<Result>,
): Promise<Result> {
  const paths: Path[] = [];
  try {
    for (const open of openers) paths.push(await open());
    return await work(paths);
  } finally {
    for (const path of paths.reverse()) await path.close();
  }
}
