import { z } from "zod";
import { isLoopback } from "./loopback.ts";

/*
 * The settings that every service has. A service adds its own, and its own defaults:
 *
 *   const settings = sharedSettings.safeExtend({ PORT: port("the port of the API").default(7101), … });
 *   const config = readConfig(settings, process.env);
 */

export function port(description: string) {
  const wrong = "is not a port from 0 to 65535";
  return whole({ min: 0, max: 65_535, wrong }).meta({ description: `${description}; 0 takes a free one` });
}

export function wholeNumber(description: string, { min, max }: { min: number; max: number }) {
  const wrong = `is not a whole number from ${min} to ${max}`;
  return whole({ min, max, wrong }).meta({ description });
}

export function text(description: string) {
  return z.string().meta({ description });
}

/** A value that no message, log or table may show. */
export function secret(description: string) {
  return z.string().meta({ description, secret: true });
}

export function choice<const Values extends readonly [string, ...string[]]>(description: string, values: Values) {
  const error = `is not one of ${values.join(", ")}`;
  return z.enum(values, { error }).meta({ description: `${description}: ${values.join(", ")}` });
}

export function flag(description: string) {
  const error = "is neither true nor false";
  return z
    .enum(["true", "false"], { error })
    .transform((value) => value === "true")
    .meta({ description: `${description}: true or false` });
}

/** Comma-separated words. */
export function list(description: string) {
  return z
    .string()
    .transform((value) => value.split(",").map((item) => item.trim()))
    .pipe(z.array(z.string().min(1, { error: "has an empty item" })))
    .meta({ description: `${description}, separated by commas` });
}

/** A URL of one of the given schemes. It may hold a password, so its value is never shown. */
export function url(description: string, schemes: readonly string[]) {
  const error = `is not a URL that starts with ${schemes.map((scheme) => `${scheme}://`).join(" or ")}`;
  return z
    .string()
    .refine((value) => URL.canParse(value) && schemes.includes(new URL(value).protocol.slice(0, -1)), { error })
    .meta({ description, secret: true });
}

const MAX_GRACE_SECONDS = 600;
const MAX_RETENTION_DAYS = 3_650;

/** How long the queues keep a parked event, which may be redriven until then. */
export const PARKED_DAYS = 30;

/** Without these four a service has no way to know its callers. */
const authVariables = ["AUTH_ISSUER", "AUTH_AUDIENCE"] as const;
const keyVariables = ["AUTH_JWKS_URL", "AUTH_JWKS_FILE"] as const;

const shape = {
  HOST: text("the address to listen on; beyond loopback only with AUTH_*").default("127.0.0.1"),
  PORT: port("the port of the API: Connect, gRPC and gRPC-Web"),
  ADMIN_HOST: text("the address of the admin server; beyond loopback only with AUTH_*").default("127.0.0.1"),
  ADMIN_PORT: port("the port of the admin server: health, metrics, dashboards"),
  DATABASE_URL: url("postgres://user:password@host:port/database of this service's own database", [
    "postgres",
    "postgresql",
  ]),
  DATABASE_MAX_CONNECTIONS: wholeNumber("the size of the connection pool", { min: 2, max: 100 }).default(10),
  REDIS_URL: url("redis://host:port of the queues' Redis or Valkey", ["redis", "rediss"]).optional(),
  QUEUE_DATABASE_URL: url("postgres://… for queues in PostgreSQL, where no Redis is", [
    "postgres",
    "postgresql",
  ]).optional(),
  QUEUE_PREFIX: text("the prefix of every queue's keys; braces keep a Redis Cluster's slots together").default(
    "{runtime-cloud}",
  ),
  SUBSCRIBERS: list("the services of this deployment that events are delivered to"),
  LOG_LEVEL: choice("the least severe entries to log", ["trace", "debug", "info", "warn", "error", "silent"]).default(
    "info",
  ),
  LOG_FORMAT: choice("JSON lines, or readable lines for a terminal", ["json", "pretty"]).default("json"),
  AUTH_ISSUER: text("the `iss` of the tokens to accept").optional(),
  AUTH_AUDIENCE: text("the `aud` that a token must name").optional(),
  AUTH_JWKS_URL: url("where the issuer publishes its keys (JWKS)", ["https", "http"]).optional(),
  AUTH_JWKS_FILE: text("a file with the issuer's keys (JWKS), instead of AUTH_JWKS_URL").optional(),
  LOCAL_ISSUER_FILE: text("where a local run without AUTH_* keeps the key that it mints").default(
    ".data/local-issuer.json",
  ),
  AUTH_TOKEN_TYPE: choice("the `typ` that a token must have", ["JWT", "at+jwt"]).default("JWT"),
  SERVICE_TOKEN: secret("the token that this service sends when it calls another one").optional(),
  SERVICE_TOKEN_FILE: text("a file with that token, read at each call, so that it may be rotated").optional(),
  TLS_CERT_FILE: text("a PEM file with the certificate chain; together with TLS_KEY_FILE it turns TLS on").optional(),
  TLS_KEY_FILE: text("a PEM file with the certificate's private key").optional(),
  TLS_CA_FILE: text("a PEM file with the authorities of client certificates, which are then required").optional(),
  EVENT_RETENTION_DAYS: days(
    "how many days a published event is kept for ListEvents, WatchEvents and ReplayEvents",
  ).default(7),
  INBOX_RECEIPT_RETENTION_DAYS: days(
    `how many days an event that was handled is known as such; more than EVENT_RETENTION_DAYS and the ${PARKED_DAYS} that a parked event is kept`,
  ).default(45),
  IDEMPOTENCY_RETENTION_DAYS: days("how many days a command's first result is returned again to its key").default(7),
  SHUTDOWN_GRACE_SECONDS: wholeNumber("how long calls and jobs under way may take to end after SIGTERM", {
    min: 0,
    max: MAX_GRACE_SECONDS,
  }).default(20),
};

type Given = Readonly<Record<string, unknown>>;

/** Checked even when other variables are wrong, so that one start shows every problem. */
const always = () => true;

export const sharedSettings = z
  .object(shape)
  .refine((given) => isLoopback(given.HOST) || hasAuth(given), beyondLoopback("HOST"))
  .refine((given) => isLoopback(given.ADMIN_HOST) || hasAuth(given), beyondLoopback("ADMIN_HOST"))
  .refine((given) => given.AUTH_ISSUER !== undefined || !hasAnyAuth(given), partialAuth("AUTH_ISSUER"))
  .refine((given) => given.AUTH_AUDIENCE !== undefined || !hasAnyAuth(given), partialAuth("AUTH_AUDIENCE"))
  .refine((given) => hasKeys(given) || !hasAnyAuth(given), partialAuth("AUTH_JWKS_URL"))
  .refine((given) => !keyVariables.every((name) => given[name] !== undefined), {
    path: ["AUTH_JWKS_FILE"],
    error: "is set beside AUTH_JWKS_URL: set one of them",
    when: always,
  })
  .refine(({ AUTH_JWKS_URL: keys = "" }) => !keys.startsWith("http:") || isLoopback(new URL(keys).hostname), {
    path: ["AUTH_JWKS_URL"],
    error: "fetches the keys in clear from another machine, where anyone between could swap them: use https",
  })
  .refine((given) => given.SERVICE_TOKEN === undefined || given.SERVICE_TOKEN_FILE === undefined, {
    path: ["SERVICE_TOKEN_FILE"],
    error: "is set beside SERVICE_TOKEN: set one of them",
    when: always,
  })
  .refine(receiptsOutliveEvents, {
    path: ["INBOX_RECEIPT_RETENTION_DAYS"],
    error:
      `must be more than EVENT_RETENTION_DAYS and ${PARKED_DAYS} together: an event that is replayed on its last day, ` +
      "then parked and redriven, comes that late, and would be handled twice",
    when: always,
  })
  .refine((given) => given.TLS_CERT_FILE !== undefined || !hasAnyTls(given), partialTls("TLS_CERT_FILE"))
  .refine((given) => given.TLS_KEY_FILE !== undefined || !hasAnyTls(given), partialTls("TLS_KEY_FILE"))
  .refine((given) => given.REDIS_URL !== undefined || given.QUEUE_DATABASE_URL !== undefined, {
    path: ["REDIS_URL"],
    error: "neither is QUEUE_DATABASE_URL: queues live in one of the two",
    when: always,
  });

/** The typed settings that every service has. */
export type SharedSettings = Readonly<z.output<typeof sharedSettings>>;

function whole({ min, max, wrong }: { min: number; max: number; wrong: string }) {
  return z.coerce.number({ error: wrong }).int({ error: wrong }).min(min, { error: wrong }).max(max, { error: wrong });
}

function days(description: string) {
  return wholeNumber(description, { min: 1, max: MAX_RETENTION_DAYS });
}

/** Values that are no numbers are another rule's business. */
function receiptsOutliveEvents({
  EVENT_RETENTION_DAYS: events,
  INBOX_RECEIPT_RETENTION_DAYS: receipts,
}: Given): boolean {
  return typeof events !== "number" || typeof receipts !== "number" || receipts > events + PARKED_DAYS;
}

function hasAuth(given: Given): boolean {
  return authVariables.every((name) => given[name] !== undefined) && hasKeys(given);
}

function hasAnyAuth(given: Given): boolean {
  return authVariables.some((name) => given[name] !== undefined) || hasKeys(given);
}

function hasKeys(given: Given): boolean {
  return keyVariables.some((name) => given[name] !== undefined);
}

function hasAnyTls(given: Given): boolean {
  return [given.TLS_CERT_FILE, given.TLS_KEY_FILE, given.TLS_CA_FILE].some((file) => file !== undefined);
}

function beyondLoopback(variable: string) {
  const error =
    "is reachable from other machines, which needs AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS_URL or AUTH_JWKS_FILE";
  return { path: [variable], error, when: always };
}

function partialAuth(variable: string) {
  const error =
    "authentication is set in part: AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS_URL or AUTH_JWKS_FILE go together";
  return { path: [variable], error, when: always };
}

function partialTls(variable: string) {
  const error = "TLS is set in part: TLS_CERT_FILE and TLS_KEY_FILE go together";
  return { path: [variable], error, when: always };
}
