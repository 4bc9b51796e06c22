import type { ProvisioningRun } from "../../generated/prisma/client.ts";

/** The columns that are large and secret: few read them, and they name them. */
export const unsealed = { sealedPlan: true, sealedOutputs: true, sealedSalvage: true } as const;

/** A run as everybody else reads it: `omit: unsealed`. */
export type Run = Omit<ProvisioningRun, keyof typeof unsealed>;
