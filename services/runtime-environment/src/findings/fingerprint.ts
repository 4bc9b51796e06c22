import { createHash } from "node:crypto";
import type { SpecificationKind } from "../../generated/prisma/client.ts";
import type { ObservedDrift } from "../observers/observer.ts";

/**
 * What makes two sightings the same finding. The kind of specification is part of it, since each kind has resources of
 * its own under the same addresses; and the observer, since each one sees for itself when what it saw is over.
 */
export function fingerprintOf({ environmentId, observer, specificationKind, drift }: Seen): string {
  const { resource, attribute, kind } = drift;
  const said = JSON.stringify([environmentId, observer, specificationKind, resource, attribute, kind]);
  return `sha256:${createHash("sha256").update(said).digest("hex")}`;
}

interface Seen {
  environmentId: string;
  observer: string;
  specificationKind: SpecificationKind;
  drift: Pick<ObservedDrift, "resource" | "attribute" | "kind">;
}
