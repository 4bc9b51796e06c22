import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";
import { machinesOf } from "@runtime-cloud/state-machines/lifecycle-edges";
import { announcedAtCreation, transitionTable } from "@runtime-cloud/state-machines/transition-table";
import { join } from "node:path";

import { contract } from "../gen/contract.ts";
import { subscriptionsBeyondPages } from "./beyond-pages.ts";
import { codeHandlers } from "./code-handlers.ts";
import type { Implementation } from "./compare.ts";
import { declaredBy } from "./declared.ts";
import { testTitles } from "./test-titles.ts";

/** Reads the repository at `root`; nothing of it is started. */
export async function implementationOf(root: string): Promise<Implementation> {
  const handlers = codeHandlers(join(root, "services"));
  return {
    declared: declaredBy(await contract()),
    beyondPages: subscriptionsBeyondPages,
    announced: announcedByMachines(),
    delivered: eventCatalogue.map(({ name }) => name),
    handlers,
    testTitles: testTitles(
      join(root, "test"),
      handlers.map(({ handler }) => handler),
    ),
  };
}

function announcedByMachines(): string[] {
  const announced = Object.values(machinesOf)
    .flat()
    .flatMap((machine) => [
      ...announcedAtCreation(machine),
      ...transitionTable(machine).flatMap(({ announces }) => announces),
    ]);
  return [...new Set(announced)];
}
