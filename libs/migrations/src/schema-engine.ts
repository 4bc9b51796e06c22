import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { bindMigrationAwareSqlAdapterFactory, type ErrorRegistry } from "@prisma/driver-adapter-utils";
import * as engine from "@prisma/schema-engine-wasm/schema_engine_bg";
import type { Pool } from "pg";

import { catalogAdapter } from "./catalog-adapter.ts";
import { datamodel } from "./migration-files.ts";
import type { ServiceName } from "./services.ts";

export type SchemaEngine = engine.SchemaEngine;

/** No table and no enum of a service's database is managed by anyone else. */
export const everything: engine.SchemaFilter = { externalTables: [], externalEnums: [] };

/** How to fail each call in flight: a panic ends the whole WebAssembly instance, and its promises never settle. */
const onPanic = new Set<(error: Error) => void>();

let loaded = false;

/**
 * Lends Prisma's schema engine, as WebAssembly, on a service's schema and the pool's database. It is what
 * `prisma migrate` runs: same files, same checksums, same `_prisma_migrations` table, with nothing to download.
 *
 * @throws Error that names the service and says what the engine found, without the engine's stack.
 */
export async function withSchemaEngine<T>(
  service: ServiceName,
  pool: Pool,
  work: (engine: SchemaEngine) => Promise<T>,
): Promise<T> {
  load();
  const adapter = bindMigrationAwareSqlAdapterFactory(catalogAdapter(pool));
  let panicked: (error: Error) => void = () => undefined;
  const panic = new Promise<never>((_resolve, reject) => (panicked = reject));
  onPanic.add(panicked);
  try {
    return await Promise.race([panic, lend(service, adapter, work)]);
  } catch (error) {
    throw new Error(`Migrations of ${service}: ${reason(error, adapter.errorRegistry)}`, { cause: error });
  } finally {
    onPanic.delete(panicked);
  }
}

async function lend<T>(service: ServiceName, adapter: object, work: (engine: SchemaEngine) => Promise<T>) {
  const datamodels = datamodel(service).map((file): [string, string] => [file.path, file.content]);
  const schemaEngine = await engine.SchemaEngine.new({ datamodels }, () => undefined, adapter);
  try {
    return await work(schemaEngine);
  } finally {
    schemaEngine.free();
  }
}

function load(): void {
  if (loaded) return;
  Object.assign(globalThis, { PRISMA_WASM_PANIC_REGISTRY: { set_message: failAll } });
  const entry = createRequire(import.meta.url).resolve("@prisma/schema-engine-wasm/schema_engine_bg");
  const module = new WebAssembly.Module(readFileSync(entry.replace(/\.js$/, ".wasm")));
  const instance = new WebAssembly.Instance(module, { "./schema_engine_bg.js": withIdleTimers(engine) });
  engine.__wbg_set_wasm(instance.exports);
  const start = instance.exports["__wbindgen_start"];
  if (typeof start === "function") Reflect.apply(start, undefined, []);
  loaded = true;
}

/** The engine leaves the timers of its lock's timeout behind; as they are they would hold the process for 10 s. */
function withIdleTimers(imports: object): Record<string, unknown> {
  const [name] = Object.keys(imports).filter((key) => key.startsWith("__wbg_setTimeout_"));
  if (name === undefined)
    throw new Error("The schema engine is another version than @runtime-cloud/migrations expects.");
  return { ...imports, [name]: (work: () => void, ms: number) => setTimeout(work, ms >>> 0).unref() };
}

function failAll(panic: string): void {
  for (const fail of onPanic) fail(new Error(panic));
}

/** The engine's message; where it only points to an error of the database's driver, that one's. */
function reason(error: unknown, drivers: ErrorRegistry): string {
  const text = error instanceof Error ? error.message : String(error);
  const id = /External error id#(\d+)/.exec(text)?.[1];
  const driver: unknown = id === undefined ? undefined : drivers.consumeError(Number(id))?.error;
  if (driver !== undefined) return reason(driver, drivers);
  return text.split(/\n\s+\d+: /)[0]?.trim() ?? text;
}
