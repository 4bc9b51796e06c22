import { secondsAfter } from "@runtime-cloud/eventing/database-clock";
import type { Inventory } from "../../generated/prisma/client.ts";
import { announcedChanges } from "../inventory/compare.ts";
import type { ServiceUnit } from "../context.ts";
import { advanceInventory } from "../inventory/inventory.ts";
import { recordChange } from "../inventory/inventory-changes.ts";
import type { Looked } from "./record-sight.ts";
import type { Judgement } from "../inventory/health.ts";
import { latest, type Moved } from "../inventory/what-moved.ts";
import { observationFailure, type Report, reportOf } from "../inventory/world.ts";
import { writeReport, writeTimes } from "../inventory/write-world.ts";

/** Writes what a look says of the environment as a whole, and announces and records what moved. */
export async function settleSight(unit: ServiceUnit, inventory: Inventory, looked: Settled): Promise<Inventory> {
  return "observation" in looked.sight ? freshen(unit, inventory, looked) : admitFailure(unit, inventory, looked);
}

type Settled = Looked & Moved;

/** Another observer may have seen the environment a moment later: the newest sight says how fresh it is. */
async function freshen(unit: ServiceUnit, inventory: Inventory, looked: Settled): Promise<Inventory> {
  const observedAt = latest(inventory.observedAt, looked.sight.at);
  const times = { observedAt, staleAt: secondsAfter(observedAt, inventory.staleAfterSeconds) };
  if (looked.moves.length === 0 && inventory.state === "FRESH") return touch(unit, { ...inventory, ...times }, looked);
  return announce(unit, inventory, { looked, ...times });
}

/** A failed look makes nothing fresher. It is announced while consumers still take the environment for fresh. */
async function admitFailure(unit: ServiceUnit, inventory: Inventory, looked: Settled): Promise<Inventory> {
  const { state, observedAt, staleAt } = inventory;
  if (looked.moves.length > 0 && state === "FRESH" && observedAt && staleAt) {
    return announce(unit, inventory, { looked, observedAt, staleAt });
  }
  const touched = await touch(unit, inventory, looked);
  return recordChange(unit, touched, { moves: looked.moves, actor: actorOf(looked) });
}

async function touch({ tx }: ServiceUnit, inventory: Inventory, looked: Settled): Promise<Inventory> {
  const row = { ...inventory, ...columnsOf(looked) };
  await writeTimes(tx, row, ownReport(looked));
  return row;
}

async function announce(unit: ServiceUnit, inventory: Inventory, { looked, observedAt, staleAt }: Announced) {
  const { moves, world } = looked;
  await writeReport(unit.tx, inventory.id, ownReport(looked));
  const { currentReleaseId } = world;
  const event = {
    type: "observe" as const,
    at: observedAt,
    staleAt,
    currentReleaseId,
    changes: announcedChanges(moves),
  };
  return advanceInventory(unit, inventory, event, { also: columnsOf(looked), moves, actor: actorOf(looked) });
}

function columnsOf({ health, healthReason, world }: Settled): Judgement & Pick<Inventory, "observationFailure"> {
  return { health, healthReason, observationFailure: observationFailure(world) };
}

function ownReport({ world, sight: { observer } }: Looked): Report {
  const report = reportOf(world, observer);
  if (!report) throw new Error(`a look by ${observer} left no report`);
  return report;
}

function actorOf({ sight }: Looked): string {
  return `observer:${sight.observer}`;
}

interface Announced {
  looked: Settled;
  observedAt: Date;
  staleAt: Date;
}
