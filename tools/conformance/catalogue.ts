import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const FILE = fileURLToPath(new URL("../../libs/contracts/catalogue.json", import.meta.url));

const field = z.object({ name: z.string(), type: z.string(), required: z.boolean() });

const event = z.object({
  name: z.string(),
  description: z.string(),
  producer: z.string(),
  context: z.string(),
  scope: z.string(),
  version: z.string(),
  topic: z.string(),
  aggregate: z.string(),
  consumers: z.array(z.string()),
  fields: z.array(field),
});

const command = z.object({
  name: z.string(),
  service: z.string(),
  handledBy: z.string(),
  resultEvents: z.array(z.string()),
  /** Empty where the page gives none. */
  summary: z.string(),
});

const subscription = z.object({
  consumer: z.string(),
  event: z.string(),
  producer: z.string(),
  handler: z.string(),
  purpose: z.string(),
});

const plane = z.object({
  plane: z.string(),
  events: z.array(event),
  commands: z.array(command),
  consumed: z.array(subscription),
});

const catalogue = z.object({ planes: z.array(plane) });

/** The architecture model's event pages as data: what proto and code are compared with. */
export type Catalogue = z.output<typeof catalogue>;
export type CatalogueEvent = z.output<typeof event>;
export type CatalogueField = z.output<typeof field>;
export type CatalogueCommand = z.output<typeof command>;
export type CatalogueSubscription = z.output<typeof subscription>;

/** The plane that this repository implements. */
export const OUR_PLANE = "Runtime Cloud";

/** Reads `libs/contracts/catalogue.json`. Throws for a file of another shape, naming where. */
export async function readCatalogue(): Promise<Catalogue> {
  return catalogue.parse(JSON.parse(await readFile(FILE, "utf8")));
}
