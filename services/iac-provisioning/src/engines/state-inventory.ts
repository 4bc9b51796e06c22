import { z } from "zod";
import { parsedJsonObject } from "../json/parsed-json.ts";
import type { EngineName } from "./engine.ts";
import { parseRecord } from "./manifests/manifests-state.ts";

const terraformState = z.object({
  resources: z
    .array(
      z.object({
        module: z.string().optional(),
        mode: z.string(),
        type: z.string(),
        name: z.string(),
        instances: z.array(
          z.object({
            index_key: z.union([z.string(), z.number()]).optional(),
            deposed: z.string().optional(),
            attributes: parsedJsonObject.nullish(),
          }),
        ),
      }),
    )
    .default([]),
});

/** What a state says is there. */
export interface StateInventory {
  /** In the state's order, such as `module.a["x"].aws_instance.web[0]`. */
  readonly addresses: readonly string[];
  has(address: string): boolean;
  /** Whether an object under the address has this as its id, or as what its provider tells in the place of one. */
  holds(address: string, id: string): boolean;
}

/** Reads what an engine wrote; no text is no state. */
export function stateInventory(engine: EngineName, text: string): StateInventory {
  const objects = engine === "manifests" ? manifestObjects(text) : terraformObjects(text);
  return {
    addresses: [...objects.keys()],
    has: (address) => objects.has(address),
    holds: (address, id) => objects.get(address)?.has(id) ?? false,
  };
}

function manifestObjects(text: string): Map<string, Set<string>> {
  const { files } = parseRecord({ identity: { lineage: "", serial: 0 }, text });
  return new Map([...files.keys()].map((address) => [address, new Set([address])]));
}

function terraformObjects(text: string): Map<string, Set<string>> {
  const objects = new Map<string, Set<string>>();
  const { resources } = terraformState.parse(text === "" ? {} : JSON.parse(text));
  for (const { module, mode, type, name, instances } of resources) {
    if (mode !== "managed") continue;
    const resource = `${module === undefined ? "" : `${module}.`}${type}.${name}`;
    for (const { index_key: key, deposed, attributes } of instances) {
      // A replacement left it behind: the address's own object is another one.
      if (deposed !== undefined) continue;
      objects.set(`${resource}${key === undefined ? "" : `[${JSON.stringify(key)}]`}`, idsOf(attributes ?? {}));
    }
  }
  return objects;
}

function idsOf(attributes: object): Set<string> {
  return new Set(Object.values(attributes).flatMap((value) => (typeof value === "string" ? [value] : [])));
}
