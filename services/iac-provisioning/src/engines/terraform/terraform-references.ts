import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import { type Keys, memberAt } from "../redaction/attribute-path.ts";
import { jsonStream } from "../json-stream.ts";
import { printPlan } from "./terraform-command.ts";
import type { TerraformSession } from "./terraform-session.ts";

/** Which parameters an attribute is made of, as far as the program's own text tells. */
export interface References {
  readonly parameters: ReadonlySet<string>;
  /** It is made of something else as well (a local value, another resource): any parameter may be behind that. */
  readonly isPartial: boolean;
}

/** The root module of the program that was planned, as `show -json` prints its configuration. Throws EngineStopped. */
export async function showConfiguration(session: TerraformSession): Promise<JsonObject> {
  let root: JsonObject = {};
  const stream = jsonStream({
    configuration: {
      root_module: (value) => {
        if (isJsonObject(value)) root = value;
      },
    },
  });
  await printPlan(session, (bytes) => stream.write(bytes));
  return root;
}

/** What the attribute of a resource refers to, followed through calls of modules up to the root's parameters. */
export function referencesOf(root: JsonObject, address: string, keys: Keys): References {
  const { modules, resource } = pathOf(address);
  const calls: Call[] = [];
  let module = root;
  for (const name of modules) {
    const call = objectAt(module, ["module_calls", name]);
    calls.push({ module, call });
    module = objectAt(call, ["module"]);
  }
  const resources = memberAt(module, ["resources"]);
  const found = isJsonArray(resources)
    ? resources.filter(isJsonObject).find((each) => each["address"] === resource)
    : undefined;
  if (!found) return { parameters: new Set(), isPartial: true };
  const expression = expressionAt(memberAt(found, ["expressions"]), keys);
  return follow(referencedIn(expression), found, calls);
}

interface Call {
  /** The module that calls, and its call. */
  module: JsonObject;
  call: JsonObject;
}

/** References of one module, translated upwards through the calls that lead to it; `owner` repeats, if anything does. */
function follow(references: readonly string[], owner: JsonObject, calls: readonly Call[]): References {
  const parameters = new Set<string>();
  let isPartial = references.length === 0;
  for (const reference of references) {
    const [, variable] = /^var\.([^.[]+)/.exec(reference) ?? [];
    const next = calls.at(-1);
    const above = calls.slice(0, -1);
    let behind: References | undefined;
    if (variable !== undefined && next) {
      behind = follow(referencedIn(memberAt(next.call, ["expressions", variable])), next.call, above);
    } else if (variable !== undefined) parameters.add(variable);
    else if (/^each\./.test(reference)) behind = follow(referencedIn(owner["for_each_expression"]), {}, calls);
    else isPartial = true;
    for (const name of behind?.parameters ?? []) parameters.add(name);
    isPartial ||= behind?.isPartial ?? false;
  }
  return { parameters, isPartial };
}

/** Blocks are walked into; an expression stands for all that is inside the attribute. */
function expressionAt(expressions: JsonValue | undefined, keys: Keys): JsonValue | undefined {
  const [key, ...rest] = keys;
  if (key === undefined || isExpression(expressions)) return expressions;
  // A block that there is once is an object here, and a list of one where it is planned.
  const member = memberAt(expressions, [key]) ?? (key === 0 ? expressions : undefined);
  return expressionAt(member, rest);
}

function isExpression(value: JsonValue | undefined): boolean {
  return isJsonObject(value) && (isJsonArray(value["references"]) || Object.hasOwn(value, "constant_value"));
}

function referencedIn(expression: JsonValue | undefined): string[] {
  const references = memberAt(expression, ["references"]);
  return isJsonArray(references) ? references.filter((each) => typeof each === "string") : [];
}

function objectAt(value: JsonValue, keys: Keys): JsonObject {
  const found = memberAt(value, keys);
  return isJsonObject(found) ? found : {};
}

const MODULE_STEP = /^module\.([^.[]+)(?:\[(?:"(?:[^"\\]|\\.)*"|\d+)\])?\./;
const KEY = /\[(?:"(?:[^"\\]|\\.)*"|\d+)\]$/;

/** `module.net["a"].vm.web[0]` leads through module `net` to `vm.web`. */
function pathOf(address: string): { modules: string[]; resource: string } {
  const modules: string[] = [];
  let rest = address;
  for (let step = MODULE_STEP.exec(rest); step; step = MODULE_STEP.exec(rest)) {
    modules.push(step[1] ?? "");
    rest = rest.slice(step[0].length);
  }
  return { modules, resource: rest.replace(KEY, "") };
}
