import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import type pg from "pg";
import { z } from "zod";
import { fromSetUp } from "./environment.ts";
import type { ProvisioningDeployment } from "./provisioning-deployment.ts";

/** Secrets by names that may be shown. */
export type Secrets = Readonly<Record<string, string>>;

/** Looks for secrets, however they are spelled. Says `<secret> (<spelling>) in <place>`, once for each. */
export interface SecretHunt {
  text(place: string, text: string | Uint8Array): void;
  /** Every row of every table of a database, columns of bytes as what they hold. */
  tables(pool: pg.Pool): Promise<void>;
  /** Every key of a Redis, of whatever type. */
  keys(redisUrl: string): Promise<void>;
  /** Every file below a directory. */
  files(directory: string): Promise<void>;
  found(): string[];
}

/** A line of a secret that is shorter tells nobody anything. */
const MIN_LINE_LENGTH = 8;
const SCAN_COUNT = 1_000;
const scanned = z.array(z.string());
const BYTES = /^\\x(?:[0-9a-f]{2})+$/;

/** Another one at each call, of characters that JSON, shells and regular expressions treat in their own ways. */
export function awkwardSecret(name: string): string {
  return `${name} "${randomBytes(6).toString("hex")}" \\w+ $(id) 'ü' [^x]`;
}

/** One that everything takes as it is. */
export function plainSecret(name: string): string {
  return `${name}-${randomBytes(9).toString("hex")}`;
}

export function secretHunt(secrets: Secrets): SecretHunt {
  const needles = Object.entries(secrets).flatMap(([name, secret]) => spellings(name, secret));
  const found = new Set<string>();

  function text(place: string, haystack: string | Uint8Array): void {
    const bytes = Buffer.from(haystack);
    for (const { name, spelled } of needles) if (bytes.includes(spelled)) found.add(`${name} in ${place}`);
  }

  /** Strings below a JSON value, and the names of its members. */
  function json(place: string, value: unknown): void {
    if (typeof value === "string") {
      text(place, value);
      if (BYTES.test(value)) text(place, Buffer.from(value.slice(2), "hex"));
    } else if (typeof value === "object" && value !== null) {
      for (const [key, member] of Object.entries(value)) {
        text(place, key);
        json(place, member);
      }
    } else text(place, String(value));
  }

  return {
    text,
    found: () => [...found].sort(),
    async tables(pool) {
      const { rows: tables } = await pool.query<{ name: string }>(TABLES);
      for (const { name } of tables) {
        const { rows } = await pool.query<{ row: Record<string, unknown> }>(
          `SELECT to_jsonb(entry) AS row FROM ${name} AS entry`,
        );
        for (const { row } of rows) for (const [column, value] of Object.entries(row)) json(`${name}.${column}`, value);
      }
    },
    async keys(redisUrl) {
      const redis = new Redis(redisUrl);
      try {
        for await (const page of redis.scanStream({ count: SCAN_COUNT })) {
          for (const key of scanned.parse(page)) json(`Redis ${key}`, [key, await contentOf(redis, key)]);
        }
      } finally {
        await redis.quit();
      }
    },
    async files(directory) {
      const entries = await readdir(directory, { recursive: true, withFileTypes: true });
      for (const entry of entries) {
        text(join(entry.parentPath, entry.name), entry.name);
        if (entry.isFile()) {
          text(join(entry.parentPath, entry.name), await readFile(join(entry.parentPath, entry.name)).catch(() => ""));
        }
      }
    },
  };
}

/** All that a deployment has left behind: its tables, all of Redis, what it said, its engines' directories. */
export async function secretsLeftIn(deployment: ProvisioningDeployment, secrets: Secrets): Promise<string[]> {
  const hunt = secretHunt(secrets);
  hunt.text("the services' own log", deployment.said());
  await hunt.tables(deployment.database);
  await hunt.keys(fromSetUp("TEST_REDIS_URL"));
  await hunt.files(deployment.folders.work);
  return hunt.found();
}

function spellings(name: string, secret: string): { name: string; spelled: Buffer }[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const lines = secret.split("\n").filter((line) => line.length >= MIN_LINE_LENGTH);
  const ways: [string, string][] = [
    ["clear", secret],
    ["JSON", escaped],
    ["JSON in JSON", JSON.stringify(escaped).slice(1, -1)],
    ["base64", Buffer.from(secret).toString("base64").replace(/=+$/, "")],
    ...(lines.length > 1 ? lines.map((line, index): [string, string] => [`line ${index + 1}`, line]) : []),
  ];
  return ways.map(([way, spelled]) => ({ name: `${name} (${way})`, spelled: Buffer.from(spelled) }));
}

async function contentOf(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case "string":
      return redis.get(key);
    case "hash":
      return redis.hgetall(key);
    case "list":
      return redis.lrange(key, 0, -1);
    case "set":
      return redis.smembers(key);
    case "zset":
      return redis.zrange(key, "0", "-1");
    case "stream":
      return redis.xrange(key, "-", "+");
    default:
      return "";
  }
}

const TABLES = `
  SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
  WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`;
