import type { Redis } from "ioredis";

/** A Lua script that the server knows. */
export type RedisScript = (
  connection: Redis,
  keys: readonly string[],
  args: readonly (number | string)[],
) => Promise<unknown>;

export async function loadScript(connection: Redis, lua: string): Promise<RedisScript> {
  const digest = String(await connection.script("LOAD", lua));
  return (caller, keys, args) => caller.evalsha(digest, keys.length, ...keys, ...args);
}
