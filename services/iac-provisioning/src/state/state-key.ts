/** One state: an environment has one for each kind of specification (BASELINE, RELEASE, WORKER_POOL). */
export interface StateKey {
  readonly tenantId: string;
  readonly environmentId: string;
  readonly kind: string;
}

/** One unambiguous text per key, whatever its parts hold. */
export function formatStateKey({ tenantId, environmentId, kind }: StateKey): string {
  return JSON.stringify([tenantId, environmentId, kind]);
}
