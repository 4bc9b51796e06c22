/** The one tenant, project and pool that every caller wants a slot of. */
export const HOT_SCOPE = {
  tenantId: "tenant-hot",
  projectId: "project-hot",
  poolId: "hot",
  /** More than there are callers, so that nobody waits: what is measured is the keeping of the count. */
  slots: 1_000,
  tenantLimit: 100_000,
  projectLimit: 10_000,
  holderKind: "Attempt",
  ttlSeconds: 60,
} as const;
