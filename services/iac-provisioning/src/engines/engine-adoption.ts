import type { JsonObject, JsonValue } from "../json/canonical-json.ts";
import type { EngineRefusal } from "./engine.ts";

export type AdoptionOutcome = Adoption | EngineRefusal;

/** A value that is there, as a DriftEntry has it: of `address`, at `attributePath`, in place of what was applied. */
export interface ObservedValue {
  readonly address: string;
  readonly attributePath: string;
  readonly observed: JsonValue;
}

export interface Adoption {
  readonly result: "adopted";
  /** The parameters that change; all others stay. Secret as far as the program declares them sensitive. */
  readonly parameters: JsonObject;
  /** Values that can't be adopted. With one of them the parameters don't do what was asked. */
  readonly refusals: readonly AdoptionRefusal[];
}

export interface AdoptionRefusal {
  readonly address: string;
  readonly attributePath: string;
  /** For a person: why not, and what to do. */
  readonly reason: string;
}
