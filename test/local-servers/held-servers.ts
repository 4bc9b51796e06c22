import { startPostgres } from "@runtime-cloud/local-servers/postgres";
import { startRedis } from "@runtime-cloud/local-servers/redis";

// Starts a scratch PostgreSQL and a Redis, prints their URLs in one line of JSON, and stays until it is killed.
const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
process.stdout.write(`${JSON.stringify({ postgres: postgres.url("postgres"), redis: redis.url })}\n`);
setInterval(() => undefined, 60_000);
