import { z } from "zod";
import type { ChangeAction, Diagnostic, EngineEvent, LogLevel } from "../engine-event.ts";
import type { OutputLine } from "../sandbox/line-splitter.ts";
import { safeLine, safeText } from "../redaction/plain-text.ts";
import type { Scrubber } from "../redaction/scrub.ts";

const MAX_DETAIL_LENGTH = 4096;

const message = z.looseObject({
  "@level": z.string(),
  "@message": z.string(),
  "@timestamp": z.string(),
  type: z.string().default("log"),
  hook: z
    .looseObject({
      resource: z.looseObject({ addr: z.string() }).optional(),
      action: z.string().optional(),
      id_value: z.string().optional(),
    })
    .optional(),
  diagnostic: z
    .looseObject({
      severity: z.string(),
      summary: z.string(),
      detail: z.string().default(""),
      address: z.string().optional(),
      // Its `snippet` quotes the program with the values that it works on, and is never shown.
      range: z
        .looseObject({ filename: z.string(), start: z.looseObject({ line: z.int() }) })
        .optional()
        .catch(undefined),
    })
    .optional(),
});
type Message = z.infer<typeof message>;

export interface LineRead {
  readonly events: readonly EngineEvent[];
  /** False for a line of another form than `-json` promises: a plain one, or one that was cut. */
  readonly isMessage: boolean;
}

/** Reads the CLI's `-json` output, one line at a time, into events. Holds when each resource's step began. */
export function terraformMessageReader(scrub: Scrubber): (line: OutputLine) => LineRead {
  const startedAt = new Map<string, number>();
  return (output) => {
    const said = parse(output.line);
    if (!said) {
      return { events: log(output.stream === "stderr" ? "warn" : "info", unreadable(output.line)), isMessage: false };
    }
    return { events: eventsOf(said), isMessage: true };
  };

  function eventsOf(said: Message): EngineEvent[] {
    if (said.diagnostic) return [{ type: "diagnostic", diagnostic: diagnosticOf(said.diagnostic) }];
    return [...resourceEvents(said), ...log(levelOf(said), said["@message"])];
  }

  function resourceEvents({ type, hook, "@timestamp": timestamp }: Message): EngineEvent[] {
    const address = hook?.resource?.addr;
    if (address === undefined) return [];
    const at = Date.parse(timestamp);
    const action = changeAction(hook?.action);
    const durationMs = Math.max(0, at - (startedAt.get(address) ?? at));
    switch (type) {
      case "apply_start":
        startedAt.set(address, at);
        return [{ type: "resource-started", address, action }];
      case "apply_complete": {
        const id = hook?.id_value === undefined ? {} : { id: safeLine(hook.id_value, scrub) };
        return [{ type: "resource-applied", address, action, durationMs, ...id }];
      }
      case "apply_errored":
        return [{ type: "resource-failed", address, action, durationMs }];
      default:
        return [];
    }
  }

  function diagnosticOf({ severity, summary, detail, address, range }: NonNullable<Message["diagnostic"]>): Diagnostic {
    return {
      severity: severity === "warning" ? severity : "error",
      summary: safeLine(summary, scrub),
      detail: safeText(detail, scrub, MAX_DETAIL_LENGTH),
      ...(address === undefined ? {} : { address }),
      ...(range === undefined ? {} : { location: safeLine(`${range.filename} line ${range.start.line}`, scrub) }),
    };
  }

  function log(level: LogLevel, text: string): EngineEvent[] {
    const line = safeText(text.trimEnd(), scrub);
    return line === "" ? [] : [{ type: "log", level, line }];
  }
}

/** `remove` and `noop` are the stream's words for the plan's `forget` and `no-op`. What is new is only told of. */
function changeAction(action: string | undefined): ChangeAction {
  switch (action) {
    case "create":
    case "read":
    case "update":
    case "delete":
    case "forget":
      return action;
    case "remove":
      return "forget";
    default:
      return "no-op";
  }
}

function parse(line: string): Message | undefined {
  try {
    return message.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

/** A message that cannot be read may be a piece of a state dump, so its text is not shown. */
function unreadable(line: string): string {
  return line.startsWith("{") ? `(a message of ${line.length} characters that cannot be read)` : line;
}

function levelOf({ "@level": level }: Message): LogLevel {
  return level === "warn" || level === "error" ? level : "info";
}
