import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type InventoryChange,
  InventoryChangeSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { z } from "zod";
import type { KnownChange } from "./inventory-change-pages.ts";
import { valueMessage } from "./json-column.ts";

const columnOfFacts = z.array(z.object({ path: z.string(), from: z.json(), to: z.json() }));

export function inventoryChangeMessage({ revision, at, actor, facts }: KnownChange): InventoryChange {
  return create(InventoryChangeSchema, {
    revision,
    at: timestampFromDate(at),
    actor,
    facts: columnOfFacts.parse(facts).map(({ path, from, to }) => ({
      path,
      ...(from !== null && { from: valueMessage(from) }),
      ...(to !== null && { to: valueMessage(to) }),
    })),
  });
}
