import type { Tx } from "./context.ts";
import type { World } from "./world.ts";

/** Reads what is known of an environment. */
export async function readWorld(tx: Tx, environmentId: string): Promise<World> {
  return tx.inventory.findUniqueOrThrow({
    where: { id: environmentId },
    select: {
      currentReleaseId: true,
      specifications: { omit: { inventoryId: true } },
      resources: { omit: { inventoryId: true } },
      components: { omit: { inventoryId: true } },
      reports: { omit: { inventoryId: true } },
    },
  });
}

/** Writes what one observer's look made of it: its report and components, the versions, and the resources if they moved. */
export async function writeWorld(tx: Tx, { environmentId: inventoryId, observer, world, resourcesMoved }: Written) {
  const own = { inventoryId, observer };
  for (const report of world.reports.filter((each) => each.observer === observer)) {
    await tx.observerReport.upsert({
      where: { inventoryId_observer: own },
      create: { ...report, inventoryId },
      update: report,
    });
  }
  await tx.component.deleteMany({ where: own });
  const components = world.components.filter((component) => component.observer === observer);
  await tx.component.createMany({ data: components.map((component) => ({ ...component, inventoryId })) });
  for (const versions of world.specifications) {
    await tx.trackedSpecification.upsert({
      where: { inventoryId_kind: { inventoryId, kind: versions.kind } },
      create: { ...versions, inventoryId },
      update: versions,
    });
  }
  if (!resourcesMoved) return;
  await tx.resource.deleteMany({ where: { inventoryId } });
  await tx.resource.createMany({ data: world.resources.map((resource) => ({ ...resource, inventoryId })) });
}

interface Written {
  environmentId: string;
  observer: string;
  world: World;
  resourcesMoved: boolean;
}
