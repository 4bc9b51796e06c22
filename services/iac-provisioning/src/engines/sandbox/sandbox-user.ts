import { stat } from "node:fs/promises";
import path from "node:path";

/** Who engines run as when the service runs as root. */
export interface EngineUser {
  readonly uid: number;
  readonly gid: number;
}

/** The user and group without rights, on every usual system. */
const NOBODY = 65_534;

export interface EngineUserChoice {
  readonly user?: EngineUser;
  /** Why engines run as root though the service could lower them. */
  readonly warning?: string;
}

/** ENGINE_UID can't be had; the message goes on from the setting's name. */
export class EngineUserRefused extends Error {
  override readonly name = "EngineUserRefused";
}

/**
 * Who engines run as. Unless ENGINE_UID says it, that is `nobody` when the service runs as root and that user can get
 * at all that an engine needs (`paths`), else whoever the service runs as. Throws EngineUserRefused when ENGINE_UID
 * names somebody who can't.
 */
export async function chooseEngineUser(
  wanted: number | undefined,
  paths: readonly string[],
): Promise<EngineUserChoice> {
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && wanted !== undefined && wanted !== process.getuid?.())
    throw new EngineUserRefused("asks for another user, which only a service that runs as root can give");
  if (!isRoot || wanted === 0) return {};

  const user = { uid: wanted ?? NOBODY, gid: wanted ?? NOBODY };
  const closed = await firstClosed(user, paths);
  if (closed === undefined) return { user };
  const problem = `can't get past ${closed}: open it (chmod o+x), or set what leads through it to another place`;
  if (wanted !== undefined) throw new EngineUserRefused(problem);
  return { warning: `engines run as root, for user ${NOBODY} ${problem}` };
}

/** The first path of all on the way to these that the user can't pass; undefined when it gets everywhere. */
async function firstClosed(user: EngineUser, paths: readonly string[]): Promise<string | undefined> {
  for (const wanted of paths) {
    for (const step of stepsTo(path.resolve(wanted))) {
      const closed = await isClosedTo(user, step);
      if (closed) return step;
    }
  }
  return undefined;
}

/** What isn't there yet is made by the service, and open. */
async function isClosedTo({ uid, gid }: EngineUser, step: string): Promise<boolean> {
  const found = await stat(step).catch(() => undefined);
  if (!found) return false;
  const needed = found.uid === uid ? 0o100 : found.gid === gid ? 0o010 : 0o001;
  return (found.mode & needed) === 0;
}

/** `/`, `/var`, `/var/lib`: the whole way to a path, with it. */
function stepsTo(absolute: string): string[] {
  const above = path.dirname(absolute);
  return above === absolute ? [absolute] : [...stepsTo(above), absolute];
}
