import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { runNode } from "../run.ts";
import type { Generator } from "./generator.ts";

/** One typed database client per service: a folder of `prisma/` that holds a `schema.prisma`. */
export function prismaClients(root: string): Generator[] {
  return readdirSync(join(root, "prisma"))
    .filter((service) => existsSync(join(root, "prisma", service, "schema.prisma")))
    .map((service) => prismaClient(root, service));
}

function prismaClient(root: string, service: string): Generator {
  const schema = `prisma/${service}`;
  const models = readdirSync(join(root, schema)).filter((name) => name.endsWith(".prisma"));
  return {
    name: `database client of ${service}`,
    inputs: [...models.map((name) => `${schema}/${name}`), "node_modules/prisma/package.json"],
    outputs: [`services/${service}/generated/prisma/client.ts`],
    async run(root) {
      await runNode(root, ["node_modules/prisma/build/index.js", "generate", "--schema", schema], {
        CHECKPOINT_DISABLE: "1",
        PRISMA_HIDE_UPDATE_MESSAGE: "1",
        // The CLI wants its schema engine's binary even for a step that never runs it, and downloads it
        // unless this names an executable.
        PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      });
    },
  };
}
