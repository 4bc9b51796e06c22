import { Writable } from "node:stream";
import { isNativeError } from "node:util/types";
import { type DestinationStream, pino } from "pino";
import { prettyLines } from "./pretty-lines.ts";

/** Structured logging: `logger.info({ runId }, "run planned")`. The fields are data, the message is a constant. */
export type Logger = pino.Logger;

export interface LoggerOptions {
  service: string;
  level: string;
  /** One readable line an entry instead of JSON, for a terminal. */
  pretty?: boolean;
  /** Where the lines go; standard output unless a test or a host wants them. */
  destination?: DestinationStream;
}

/**
 * JSON lines on standard output. Fields that hold credentials are removed by name, credentials inside text by pattern,
 * and control characters everywhere: what an engine or a caller sends can't repaint an operator's terminal.
 */
export function createLogger({ service, level, pretty = false, destination = process.stdout }: LoggerOptions): Logger {
  const options: pino.LoggerOptions = {
    level,
    base: { service, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: redacted, censor: "[redacted]" },
    serializers: { err: describeError, error: describeError },
    formatters: { level: (label) => ({ level: label }), log: (fields) => cleanFields(fields) },
    hooks: {
      logMethod(parameters, method) {
        const [first, second, ...rest] = parameters;
        if (typeof first === "string") return method.apply(this, [clean(first)]);
        return method.apply(this, [first, second === undefined ? undefined : clean(second), ...rest]);
      },
    },
  };
  return pino(options, pretty ? prettyLines(destination) : destination);
}

/** A logger that writes nowhere, for tests that don't look at the log. */
export function silentLogger(): Logger {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  return createLogger({ service: "silent", level: "silent", destination: nowhere });
}

const secretFields = ["authorization", "token", "password", "secret", "cookie", "privateKey", "serviceToken"];
const redacted = secretFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);

/** Longest text that a log line keeps of one field. */
const MAX_TEXT = 8_192;
/** How far nested fields and chains of causes are followed. */
const MAX_DEPTH = 4;

/** The parts of an error that a log keeps. Anything else on it (a request, a query's parameters) stays out. */
function describeError(error: unknown, depth = 0): unknown {
  if (!isNativeError(error)) return cleanValue(error, depth);
  const code: unknown = Reflect.get(error, "code");
  return {
    type: error.name,
    message: clean(error.message),
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    ...(error.stack ? { stack: clean(error.stack) } : {}),
    ...(error.cause !== undefined && depth < MAX_DEPTH ? { cause: describeError(error.cause, depth + 1) } : {}),
  };
}

function cleanFields(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, cleanValue(value, 0)]));
}

function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === "string") return clean(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  if (isNativeError(value)) return describeError(value, depth);
  if (depth >= MAX_DEPTH) return "[deeper]";
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, cleanValue(item, depth + 1)]));
}

// ANSI escape sequences whole, then everything below space but tab and line feed, DEL and C1. As text, since a linter
// takes control characters in a literal for a mistake.
const escapeSequence = new RegExp(String.raw`\u001b\[[0-9;?]*[ -/]*[@-~]`, "gu");
const controlCharacter = new RegExp(String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f]`, "gu");
const urlCredentials = /\b([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s@/]+@/gi;
const bearerToken = /\bBearer\s+[\w.~+/-]+=*/gi;

function clean(text: string): string {
  return text
    .slice(0, MAX_TEXT)
    .replace(escapeSequence, "")
    .replace(controlCharacter, "")
    .replace(urlCredentials, "$1:[redacted]@")
    .replace(bearerToken, "Bearer [redacted]");
}
