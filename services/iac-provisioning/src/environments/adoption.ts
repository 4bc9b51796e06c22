import { toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { ObservedValue as ObservedValueMessage } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { IllegalTransition, InvalidInput, Unavailable } from "@runtime-cloud/service-kit/errors";
import { z } from "zod";
import type { Specification } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { openDesiredState } from "../specifications/desired-state.ts";
import type { AdoptionRefusal } from "../engines/engine-adoption.ts";
import type { EngineFailure, EngineFailureCode, EngineSignals } from "../engines/engine.ts";
import { lookAsApplied } from "./look-as-applied.ts";
import type { JsonObject, JsonValue } from "../json/canonical-json.ts";
import type { Program } from "../programs/program-directory.ts";

/** What is to be declared so that what is observed is what is specified. */
export interface Adopted {
  specification: Specification;
  program: Program;
  /** All of them, and those that change. Secret: sensitive ones are in clear. */
  parameters: JsonObject;
  changed: JsonObject;
  /** With one of these there is nothing to declare. */
  refusals: readonly AdoptionRefusal[];
}

/** Asks a specification's engine. Throws IllegalTransition unless it is applied, InvalidInput, and Unavailable. */
export async function whatToAdopt(
  context: Context,
  specification: Specification,
  values: readonly ObservedValueMessage[],
  signals: EngineSignals,
): Promise<Adopted> {
  refuseUnapplied(specification);
  const observed = values.map(({ address, attribute, observed: value }) => ({
    address,
    attributePath: attribute,
    observed: plainValue(value),
  }));
  const outcome = await lookAsApplied(context, specification, signals, (engine, job) => engine.adopt(job, observed));
  if (outcome.result === "failed") throw refused(outcome.failure);
  const { program, parameters } = await openDesiredState(context, specification);
  const { parameters: changed, refusals } = outcome;
  return { specification, program, parameters: { ...parameters, ...changed }, changed, refusals };
}

function refuseUnapplied({ id, state }: Specification): void {
  if (state === "APPLIED") return;
  throw new IllegalTransition({
    aggregate: "DeploymentSpecification",
    id,
    state,
    event: "adopt",
    reason: "not-in-this-state",
    allowed: state === "DECLARED" ? ["apply", "supersede", "withdraw"] : [],
  });
}

const json = z.json();

function plainValue(value: Value | undefined): JsonValue {
  return value ? json.parse(toJson(ValueSchema, value)) : null;
}

/** What another try, or time, won't mend. */
const LASTING: ReadonlySet<EngineFailureCode> = new Set([
  "INVALID_PROGRAM",
  "INVALID_INPUT",
  "INVALID_PLAN",
  "ENGINE_ERROR",
  "SANDBOX_UNAVAILABLE",
]);

function refused({ code, address, message }: EngineFailure): Error {
  if (code === "KILLED") return new Unavailable("the engine didn't answer within the call's time: give it more");
  const text = `${code}: ${address === undefined ? "" : `${address}: `}${message}`;
  return LASTING.has(code)
    ? new InvalidInput([{ field: "specificationId", description: `can't be looked at: ${text}` }])
    : new Unavailable(text);
}
