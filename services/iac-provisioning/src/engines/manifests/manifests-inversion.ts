import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import { likeValue } from "../adoption-asks.ts";
import { formatPath, type Keys, memberAt } from "../redaction/attribute-path.ts";
import { renderText, templateParts, type TemplatePart } from "./manifests-template.ts";

/** What a parameter must be for a template to render to what is observed, or why there is no such value. */
export type Inversion = { readonly place: Keys; readonly wanted: JsonValue | undefined } | { readonly problem: string };

export interface Inverted {
  readonly template: JsonValue;
  /** Where in the rendered document it is observed. */
  readonly keys: Keys;
  /** Undefined: there is nothing. */
  readonly observed: JsonValue | undefined;
  readonly parameters: JsonObject;
  /** The template's file, for a person. */
  readonly file: string;
}

/** Turns a template around: from what was rendered to the parameter that it came from. */
export function invert(asked: Inverted): Inversion {
  const { template, keys, file } = asked;
  if (typeof template === "string") return invertScalar(asked, template);
  const [key, ...rest] = keys;
  if (key === undefined) return { problem: `${file} says it word for word: give the program a parameter for it` };
  const member = memberOf(asked, key);
  if (member === undefined) {
    return { problem: `${file} has nothing at ${formatPath([key])}: give the program a parameter for it` };
  }
  return invert({ ...asked, template: member, keys: rest });
}

function memberOf({ template, parameters, file }: Inverted, key: string | number): JsonValue | undefined {
  if (isJsonArray(template)) return typeof key === "number" ? template[key] : undefined;
  if (!isJsonObject(template)) return undefined;
  return Object.entries(template).find(([name]) => renderText(name, parameters, file) === key)?.[1];
}

function invertScalar({ keys, observed, parameters, file }: Inverted, template: string): Inversion {
  const parts = templateParts(template);
  const [only] = parts;
  if (parts.length === 1 && only && "parameter" in only) {
    return { place: [...only.parameter.split("."), ...keys], wanted: observed };
  }
  const written = `${file} writes ${JSON.stringify(template)} there`;
  if (!parts.some((part) => "parameter" in part)) return { problem: `${written}: give the program a parameter for it` };
  if (keys.length > 0 || typeof observed !== "string") return { problem: `${written}, which is a text` };

  const solutions = parts.flatMap((part, index) => solve(parts, index, { observed, parameters, file }));
  const [solution, another] = solutions;
  if (solution && !another) return solution;
  if (!solution) return { problem: `${written}, and no one parameter makes that what was observed` };
  const names = solutions.map(({ place }) => formatPath(place)).join(" or ");
  return { problem: `${written}: it could be parameter ${names} that changed` };
}

interface Text {
  observed: string;
  parameters: JsonObject;
  file: string;
}

/** What the parameter at one place of a text must be if all others stay as they are. */
function solve(parts: readonly TemplatePart[], index: number, { observed, parameters, file }: Text) {
  const part = parts[index];
  if (!part || !("parameter" in part)) return [];
  const written = (from: number, to: number) =>
    parts
      .slice(from, to)
      .map((each) => ("text" in each ? each.text : renderText(`\${${each.parameter}}`, parameters, file)));
  const [prefix, suffix] = [written(0, index).join(""), written(index + 1, parts.length).join("")];
  const fits = observed.startsWith(prefix) && observed.endsWith(suffix);
  if (!fits || observed.length < prefix.length + suffix.length) return [];
  const place = part.parameter.split(".");
  const text = observed.slice(prefix.length, observed.length - suffix.length);
  const wanted = likeValue(text, memberAt(parameters, place));
  return wanted === undefined ? [] : [{ place, wanted }];
}
