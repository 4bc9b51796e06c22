import { isFresh, refresh } from "./fingerprint.ts";
import type { Generator } from "./generator.ts";
import { prismaClients } from "./prisma-clients.ts";
import { protobuf } from "./protobuf.ts";
import { seconds } from "../seconds.ts";

/** Writes what the code imports and git ignores: protobuf types and database clients, where their sources changed. */
export async function generateClients(root: string): Promise<void> {
  await generate(root, [protobuf, ...prismaClients(root)]);
}

/** Runs the generators that aren't fresh, side by side, and says so in a line each. */
export async function generate(root: string, generators: readonly Generator[]): Promise<void> {
  const stale = generators.filter((generator) => !isFresh(root, generator));
  await Promise.all(
    stale.map(async (generator) => {
      const started = performance.now();
      await refresh(root, generator);
      console.log(`  generated ${generator.name} (${seconds(started)})`);
    }),
  );
}
