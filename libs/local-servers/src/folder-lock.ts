import { lock } from "proper-lockfile";

/** A holder that was killed is known by its lock's age; a living one renews it twice in that time. */
const STALE_MS = 5_000;
const LOOK_EVERY_MS = 50;

/**
 * Does `work` while nobody else, in this process or another, does work under the same folder's lock. A lock whose
 * holder was killed is free after some seconds.
 *
 * @throws Error when others hold it for all of `timeoutMs`.
 */
export async function withFolderLock<T>(folder: string, timeoutMs: number, work: () => Promise<T>): Promise<T> {
  const release = await lock(folder, {
    stale: STALE_MS,
    retries: {
      retries: Math.ceil(timeoutMs / LOOK_EVERY_MS),
      factor: 1,
      minTimeout: LOOK_EVERY_MS,
      maxTimeout: LOOK_EVERY_MS,
    },
  });
  try {
    return await work();
  } finally {
    await release();
  }
}
