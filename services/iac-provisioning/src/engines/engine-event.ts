import type { JsonObject } from "../json/canonical-json.ts";

/** What an engine says while it works. Plain JSON, secrets scrubbed, text bounded: store it as it is. */
export type EngineEvent =
  LogLine | ChangePlanned | ResourceStarted | ResourceApplied | ResourceFailed | DiagnosticRaised;

/** One line for the run's log: no control characters, at most MAX_LINE_LENGTH long. */
export interface LogLine {
  readonly type: "log";
  readonly level: LogLevel;
  readonly line: string;
}
export type LogLevel = "info" | "warn" | "error";

export interface ChangePlanned {
  readonly type: "change-planned";
  readonly change: PlannedChange;
}

export interface ResourceStarted {
  readonly type: "resource-started";
  readonly address: string;
  readonly action: ChangeAction;
}

/** One step of a resource is done. A replacement has two, its delete and its create. */
export interface ResourceApplied {
  readonly type: "resource-applied";
  readonly address: string;
  readonly action: ChangeAction;
  /** The provider's id, where it tells one. */
  readonly id?: string;
  readonly durationMs: number;
}

/** Its diagnostic may follow later, as a `diagnostic` event with the same address. */
export interface ResourceFailed {
  readonly type: "resource-failed";
  readonly address: string;
  readonly action: ChangeAction;
  readonly durationMs: number;
}

export interface DiagnosticRaised {
  readonly type: "diagnostic";
  readonly diagnostic: Diagnostic;
}

export interface Diagnostic {
  readonly severity: "error" | "warning";
  readonly summary: string;
  readonly detail: string;
  readonly address?: string;
  /** Where in the program, as `main.tf line 12`. */
  readonly location?: string;
}

export type ChangeAction = "no-op" | "create" | "read" | "update" | "delete" | "forget";

export interface PlannedChange {
  readonly address: string;
  readonly resourceType: string;
  /** In the order in which they are done: a replacement is `delete, create` or `create, delete`. */
  readonly actions: readonly ChangeAction[];
  /** A hint of the engine, from an open set: `replace_because_tainted`, `replace_because_cannot_update: ami`, … */
  readonly actionReason?: string;
  /** Null when there is nothing before or after. Sensitive values are SENSITIVE, values known later UNKNOWN. */
  readonly before: JsonObject | null;
  readonly after: JsonObject | null;
  /** Where the resource was before a move. With `no-op` the move is all that is done. */
  readonly previousAddress?: string;
  /** The provider's id (or its identity, as JSON) of an existing object that is taken in. */
  readonly importId?: string;
  /** Its key, for an object that an earlier replacement left behind. Its successor has a change of its own. */
  readonly deposed?: string;
}

/** Stands for a value that must not be shown. */
export const SENSITIVE = "(sensitive value)";
/** Stands for a value that only the apply will tell. */
export const UNKNOWN = "(known after apply)";
