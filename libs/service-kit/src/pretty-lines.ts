import { Writable } from "node:stream";
import type { DestinationStream } from "pino";

/** Turns pino's JSON lines into `12:00:01.123 INFO  service: message key=value`, for a person at a terminal. */
export function prettyLines(destination: DestinationStream): Writable {
  return new Writable({
    decodeStrings: false,
    write(line: string | Buffer, _encoding, done) {
      destination.write(`${prettyLine(line.toString())}\n`);
      done();
    },
  });
}

function prettyLine(line: string): string {
  const entry: unknown = JSON.parse(line);
  if (!isEntry(entry)) return line.trimEnd();
  const { time, level, service, msg, err, ...fields } = entry;
  const head = `${time.slice(11, 23)} ${level.toUpperCase().padEnd(5)} ${service}: ${msg ?? ""}`;
  const shown = Object.entries(fields).filter(([name]) => name !== "pid");
  return [[head, ...shown.map(([name, value]) => `${name}=${show(value)}`)].join(" "), ...errorLines(err)].join("\n");
}

/** What `createLogger` makes of a call. */
interface Entry extends Record<string, unknown> {
  time: string;
  level: string;
  service: string;
  msg?: string;
  err?: { message: string; stack?: string };
}

function isEntry(entry: unknown): entry is Entry {
  return typeof entry === "object" && entry !== null && "time" in entry && "level" in entry && "service" in entry;
}

function show(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function errorLines(error: Entry["err"]): string[] {
  if (!error) return [];
  return (error.stack ?? error.message).split("\n").map((line) => `  ${line}`);
}
