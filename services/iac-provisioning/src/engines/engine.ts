import type { JsonObject, JsonValue } from "../json/canonical-json.ts";
import type { AdoptionOutcome, ObservedValue } from "./engine-adoption.ts";
import type { EngineEvent, PlannedChange } from "./engine-event.ts";

export type EngineName = "terraform" | "manifests";

/**
 * What plans and applies a program: the port between run executors and the tools that change the world.
 *
 * Every verb is a stream of events that ends in an outcome (the generator's return value). What can be expected to go
 * wrong is an outcome, never a throw: no binary, a bad program, a held lock, a stale plan, an interrupt, a kill. A
 * throw means a defect, or that the work directory cannot be written.
 *
 * All text and attributes in events and outcomes are safe to store in clear: sensitive values are masked and known
 * secrets scrubbed. The exceptions say "secret" in their comment.
 *
 * A generator that is left early (`return`) interrupts the engine and waits for its end.
 */
export interface Engine {
  readonly name: EngineName;
  /** Throws EngineUnavailable, whose message says what to install. */
  version(): Promise<EngineVersion>;
  plan(job: PlanJob): AsyncGenerator<EngineEvent, PlanOutcome>;
  /** Applies exactly the plan given, once: after any effect the same plan is stale. */
  apply(job: ApplyJob): AsyncGenerator<EngineEvent, ApplyOutcome>;
  /** Compares the world with the applied specification. Changes nothing and takes no lock. */
  drift(job: DriftJob): AsyncGenerator<EngineEvent, DriftOutcome>;
  /**
   * Says which parameters of the applied specification must take which values for the next plan to leave what is
   * observed as it is. Changes nothing and takes no lock.
   */
  adopt(job: DriftJob, values: readonly ObservedValue[]): Promise<AdoptionOutcome>;
}

/** `product` is `terraform`, `opentofu` or `manifests`; a plan is applied only by the version that made it. */
export interface EngineVersion {
  readonly product: string;
  readonly version: string;
}

/** APPLY reaches the specification, DESTROY removes what it made, REFRESH_ONLY records what is really there. */
export type EngineMode = "APPLY" | "DESTROY" | "REFRESH_ONLY";

export interface EngineJob {
  readonly program: ProgramSource;
  /** Validated and defaulted against the program's declaration. */
  readonly parameters: JsonObject;
  readonly state: StateAccess;
  /** Absolute, one per environment and kind: where `manifests` keeps its files. `terraform` leaves it alone. */
  readonly targetDirectory: string;
  /** Existing directory under which a private work directory is made for the job and removed after it. */
  readonly workRoot: string;
  /** Values that must never leave the engine: scrubbed from every event and outcome. */
  readonly secrets: readonly string[];
  readonly signals: EngineSignals;
}

export interface EngineSignals {
  /** Asks the engine to stop where it can do so safely; it writes its state and ends. Record the intent first. */
  readonly interrupt: AbortSignal;
  /** Kills the engine's whole process group at once. An apply then ends "indeterminate". */
  readonly kill: AbortSignal;
}

export interface PlanJob extends EngineJob {
  readonly mode: EngineMode;
}

export interface ApplyJob extends EngineJob {
  readonly mode: EngineMode;
  /** `Planned.artifact` and `Planned.planDigest` of the plan to apply. Secret. */
  readonly artifact: Uint8Array;
  readonly planDigest: string;
  /** Called with the state, as text, when the state backend didn't take it. Secret. */
  readonly rescueState: (state: string) => Promise<Rescue>;
}

/**
 * `recorded`: the state backend has it now, so that the apply ends as if the engine had written it. `kept`: it is safe,
 * but the recorded state lacks what was changed, so the apply ends "indeterminate". `reason` says why, for a person.
 */
export type Rescue = { readonly result: "recorded" } | { readonly result: "kept"; readonly reason: string };

/** `parameters` and `program` are those of the applied specification, so a declared change is no drift. */
export type DriftJob = EngineJob;

export interface ProgramSource {
  /** Absolute directory that holds program.yaml. */
  readonly directory: string;
  /** `name@version`. */
  readonly programVersion: string;
  /** `sha256:<hex>` of its content. */
  readonly digest: string;
  /** `none`: the program runs cut off from every network, or not at all. Absent: as `host`. */
  readonly network?: "host" | "none";
}

/** One environment's state of one kind, at the service's own http state backend (see state/state-backend.ts). */
export interface StateAccess {
  /** Absolute http URL of the state, without credentials. */
  readonly address: string;
  /** The run's id and its one-run credential. Secret. */
  readonly username: string;
  readonly password: string;
}

/** Which state a plan was made from. No state yet: `{ lineage: "", serial: 0 }`. */
export interface StateIdentity {
  readonly lineage: string;
  readonly serial: number;
}

export type PlanOutcome = Planned | EngineRefusal;

export interface Planned {
  readonly result: "planned";
  readonly engine: EngineVersion;
  readonly changes: readonly PlannedChange[];
  readonly summary: PlanSummary;
  /** Whether any change deletes (a replacement does). */
  readonly destructive: boolean;
  /** Nothing to do, outputs included: applying it would only repeat what is recorded. */
  readonly noChanges: boolean;
  /** `sha256:<hex>` over the redacted plan and all that it depends on: what an approval binds to. */
  readonly planDigest: string;
  readonly state: StateIdentity;
  /** Outputs as far as they are known and not sensitive. With `noChanges` they are the environment's outputs. */
  readonly outputs: JsonObject;
  /** The sensitive ones, as far as they are known. Secret. */
  readonly sensitiveOutputs: JsonObject;
  /** Secret: encrypt it before storing. Whatever process applies the plan needs it. */
  readonly artifact: Uint8Array;
  /** Secret: pass as `secrets` to the apply, and scrub from anything else that is written about the run. */
  readonly sensitiveValues: readonly string[];
}

/** A replacement counts in `replaces` only. Reads and no-ops count nowhere. */
export interface PlanSummary {
  readonly adds: number;
  readonly changes: number;
  readonly deletes: number;
  readonly replaces: number;
}

/**
 * `applied`: everything. `failed`: nothing was changed. `partially-applied`: something was, and is recorded in the
 * state. `indeterminate`: the engine was killed or vanished, so the state may not hold what it created.
 */
export type ApplyResult = "applied" | "partially-applied" | "failed" | "indeterminate";

export interface ApplyOutcome {
  readonly result: ApplyResult;
  /** Outputs that are not sensitive; empty unless applied. */
  readonly outputs: JsonObject;
  /** Secret. */
  readonly sensitiveOutputs: JsonObject;
  /** Why it did not all apply; absent when applied. */
  readonly failure?: EngineFailure;
}

export type DriftOutcome = Observed | EngineRefusal;

export interface Observed {
  readonly result: "observed";
  readonly engine: EngineVersion;
  readonly state: StateIdentity;
  /** Empty means in sync. */
  readonly drift: readonly DriftEntry[];
  /** Every resource that is really there, as far as the engine can see. */
  readonly resources: readonly ObservedResource[];
  /** The recorded outputs that are not sensitive (`components` and `pools` are read from here). */
  readonly outputs: JsonObject;
}

export type DriftKind = "RESOURCE_MISSING" | "RESOURCE_UNMANAGED" | "ATTRIBUTE_CHANGED";

export interface DriftEntry {
  readonly address: string;
  readonly resourceType: string;
  readonly kind: DriftKind;
  /** Dotted path inside the resource, such as `spec.replicas` or `containers[0].image`; empty for the whole of it. */
  readonly attributePath: string;
  /** As the specification had it applied; null when it had none. */
  readonly before: JsonValue;
  /** As observed; null when it is gone. */
  readonly after: JsonValue;
}

export interface ObservedResource {
  readonly address: string;
  readonly resourceType: string;
  /** The provider's id; the address where there is none. */
  readonly id: string;
  /** A bounded summary: top-level scalars, sensitive ones masked. */
  readonly attributes: JsonObject;
}

/** The engine ended without the outcome that was asked of it. */
export interface EngineRefusal {
  readonly result: "failed";
  readonly failure: EngineFailure;
}

export interface EngineFailure {
  readonly code: EngineFailureCode;
  /** One bounded line for a person, secrets scrubbed. */
  readonly message: string;
  /** The resource that failed, where one did. */
  readonly address?: string;
}

/**
 * ENGINE_UNAVAILABLE: no binary. PROVIDER_UNAVAILABLE: a provider that the program wants can't be had. INVALID_PROGRAM:
 * the program makes no sense to the engine. INVALID_INPUT: a parameter is missing, or the program refuses its value.
 * INVALID_PLAN: the engine's plan says what this version doesn't know, or leaves something out. STATE_LOCKED: another run holds the state's lock. STATE_REFUSED: the state backend is out of reach or refuses the
 * credential. STALE_PLAN: state, engine or plan differ from what was planned. STATE_PERSIST_FAILED: what was changed
 * could not be recorded. LIMIT_EXCEEDED: processor time, a file's size or the number of processes, by the deployment's
 * settings. OOM_KILLED: memory, the settings' or the machine's. WORK_DIRECTORY_FULL: no space on disk.
 * SANDBOX_UNAVAILABLE: the program asks for a confinement that can't be had here. INTERRUPTED and KILLED: by
 * EngineSignals. ENGINE_ERROR: anything else that the engine reports, a failing resource above all.
 */
export type EngineFailureCode =
  | "ENGINE_UNAVAILABLE"
  | "PROVIDER_UNAVAILABLE"
  | "INVALID_PROGRAM"
  | "INVALID_INPUT"
  | "INVALID_PLAN"
  | "STATE_LOCKED"
  | "STATE_REFUSED"
  | "STALE_PLAN"
  | "STATE_PERSIST_FAILED"
  | "LIMIT_EXCEEDED"
  | "OOM_KILLED"
  | "WORK_DIRECTORY_FULL"
  | "SANDBOX_UNAVAILABLE"
  | "INTERRUPTED"
  | "KILLED"
  | "ENGINE_ERROR";
