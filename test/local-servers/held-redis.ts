import { startRedis } from "@runtime-cloud/local-servers/redis";

// Starts a Redis on the folder of the argument, or joins the one that runs there; prints its URL and stays until it is
// killed.
const [, , dataDir = ""] = process.argv;
const redis = await startRedis({ dataDir });
process.stdout.write(`${redis.url}\n`);
setInterval(() => undefined, 60_000);
