import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** How to reach a Redis on 127.0.0.1. */
export interface RedisAccess {
  readonly port: number;
  readonly password: string;
}

/**
 * Writes the configuration of a server in `folder` and gives its file. The password is in a file that only we can
 * read: arguments are everyone's to see.
 */
export function writeRedisConfiguration(folder: string, { port, password }: RedisAccess, keepsData: boolean): string {
  const lines = [
    "bind 127.0.0.1",
    `port ${port}`,
    `requirepass ${password}`,
    `dir "${folder}"`,
    "maxmemory-policy noeviction",
    'save ""',
    `appendonly ${keepsData ? "yes" : "no"}`,
    "appendfsync everysec",
    "daemonize no",
  ];
  const file = fileOf(folder);
  writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o600 });
  return file;
}

/**
 * How to reach the last server that was started in `folder`, which may be gone. Undefined when there was none: also
 * where the folder is a copy, whose configuration is that of the original's server.
 */
export function lastRedisAccess(folder: string): RedisAccess | undefined {
  if (!existsSync(fileOf(folder))) return undefined;
  const text = readFileSync(fileOf(folder), "utf8");
  const port = Number(/^port (\d+)$/m.exec(text)?.[1]);
  const password = /^requirepass (.+)$/m.exec(text)?.[1];
  const dir = /^dir "(.+)"$/m.exec(text)?.[1];
  if (!Number.isSafeInteger(port) || password === undefined || dir === undefined) return undefined;
  return isSameFolder(dir, folder) ? { port, password } : undefined;
}

function isSameFolder(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}

function fileOf(folder: string): string {
  return join(folder, "redis.conf");
}
