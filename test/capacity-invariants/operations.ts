import fc from "fast-check";

/*
 * What the properties do to the service. Everything is named by its place: a tenant, a pool, a holder by the place in
 * the run's cast, a lease by how many of those that were seen last came after it. So any part of a run makes sense.
 */

export type Operation =
  | AcquireStep
  | { kind: "repeat"; back: number }
  | { kind: "renew"; lease: number; token: Token; ttlSeconds: number }
  | { kind: "release"; lease: number; token: Token | "none" }
  | { kind: "revoke"; lease: number }
  | { kind: "look"; lease: number }
  | { kind: "endHolder"; tenant: number; holder: number; deliveries: number }
  | { kind: "setQuota"; tenant: number; project: number | null; runs: number; sandboxes: number; weight: number }
  | { kind: "retireQuota"; tenant: number; project: number | null }
  | { kind: "resize"; pool: number; size: number }
  | { kind: "cordon"; pool: number; resumes: boolean }
  | { kind: "uncordon"; pool: number }
  | { kind: "drain"; pool: number; withinSeconds: number }
  | { kind: "deadlines" };

/** Right, of an earlier grant, or never given. */
type Token = "right" | "stale" | "unknown";

export interface AcquireStep {
  kind: "acquire";
  tenant: number;
  project: number;
  holder: number;
  /** Under the id that the holder had before its last end. */
  late: boolean;
  target: { pool: number } | { selector: { kind: PoolKindName; zone: string | null; placement: "PACK" | "SPREAD" } };
  resource: "RUNS" | "SANDBOXES";
  units: number;
  priority: number;
  ttlSeconds: number;
  /** 0: not at all. */
  waitSeconds: number;
}

export type PoolKindName = "RUN_WORKERS" | "SANDBOX_HOSTS" | "GENERAL";

/** How much room there is: pools and quotas are by so much larger than those that everybody fights for. */
export interface Room {
  factor: number;
  /** Of each tenant. */
  holders: number;
}

export const TIGHT: Room = { factor: 1, holders: 24 };
/** Nearly all that is asked for is granted at once. */
export const AMPLE: Room = { factor: 50, holders: 150 };

/**
 * Lives and waits end halfway between the steps in which time goes by, so that what is due is due by 50 s and what
 * isn't has as long to go: a slow run decides the same.
 */
export const ELAPSE_STEP_SECONDS = 100;
const lasting = fc.integer({ min: 0, max: 4 }).map((steps) => steps * ELAPSE_STEP_SECONDS + ELAPSE_STEP_SECONDS / 2);

const tenant = fc.nat({ max: 3 });
const project = fc.nat({ max: 2 });
const pool = fc.nat({ max: 6 });
/** Of the last that were seen more often than of those before. */
const lease = fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 250 }));
const kindName = fc.constantFrom<PoolKindName>("RUN_WORKERS", "SANDBOX_HOSTS", "GENERAL");
const token = fc.constantFrom<Token>("right", "right", "right", "stale", "unknown");
const repeat = fc.record({ kind: fc.constant("repeat"), back: fc.oneof(fc.nat({ max: 12 }), fc.nat({ max: 150 })) });
const quotaScope = { tenant, project: fc.option(project, { freq: 2 }) };

const selector = fc.record({
  selector: fc.record({
    kind: kindName,
    zone: fc.constantFrom("a", "b", null),
    placement: fc.constantFrom("PACK", "SPREAD"),
  }),
});
const target = fc.oneof({ weight: 3, arbitrary: fc.record({ pool }) }, { weight: 1, arbitrary: selector });

/** Some come and end again and again. */
function holderIn({ holders }: Room): fc.Arbitrary<number> {
  return fc.oneof(fc.nat({ max: BUSY_HOLDERS - 1 }), fc.nat({ max: holders - 1 }));
}
const BUSY_HOLDERS = 8;

function acquireIn(room: Room): fc.Arbitrary<AcquireStep> {
  return fc.record({
    kind: fc.constant("acquire"),
    tenant,
    project,
    holder: holderIn(room),
    late: fc.nat({ max: 5 }).map((dice) => dice === 0),
    target,
    resource: fc.constantFrom("RUNS", "SANDBOXES"),
    units: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.integer({ min: 2, max: 4 }) }),
    priority: fc.constantFrom(0, 0, 5, 1000),
    ttlSeconds: lasting,
    waitSeconds: fc.oneof({ weight: 3, arbitrary: lasting }, { weight: 1, arbitrary: fc.constant(0) }),
  });
}

/** What holders do, in every variety. */
export function deskStep(room: Room): fc.Arbitrary<Operation> {
  return fc.oneof(
    { weight: 40, arbitrary: acquireIn(room) },
    { weight: 8, arbitrary: repeat },
    { weight: 14, arbitrary: fc.record({ kind: fc.constant("renew"), lease, token, ttlSeconds: lasting }) },
    {
      weight: 26,
      arbitrary: fc.record({
        kind: fc.constant("release"),
        lease,
        token: fc.oneof(token, fc.constant("none" as const)),
      }),
    },
  );
}

/** What holders do nearly always: each asks a pool for one slot, keeps it, and gives it back. */
export function plainStep(room: Room): fc.Arbitrary<Operation> {
  const plain = { target: { pool: 2 }, units: 1, priority: 0, late: false };
  return fc.oneof(
    {
      weight: 40,
      arbitrary: fc
        .tuple(acquireIn(room), pool)
        .map(([step, place]) => ({ ...step, ...plain, target: { pool: place } })),
    },
    { weight: 6, arbitrary: repeat },
    {
      weight: 25,
      arbitrary: fc.record({ kind: fc.constant("renew"), lease, token: fc.constant("right"), ttlSeconds: lasting }),
    },
    {
      weight: 25,
      arbitrary: fc.record({ kind: fc.constant("release"), lease, token: fc.constantFrom("right", "none") }),
    },
  );
}

export function endStep(room: Room): fc.Arbitrary<Operation> {
  return fc.record({
    kind: fc.constant("endHolder"),
    tenant,
    holder: holderIn(room),
    deliveries: fc.integer({ min: 1, max: 3 }),
  });
}

/** What operators and other services do. */
export function operatorStep(room: Room): fc.Arbitrary<Operation> {
  const roomy = (amount: fc.Arbitrary<number>) => amount.map((number) => number * room.factor);
  const limit = fc.oneof(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 8, max: 40 }), roomy(fc.constant(40)));
  const weight = fc.integer({ min: 1, max: 4 });
  return fc.oneof(
    { weight: 6, arbitrary: endStep(room) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("revoke"), lease }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("look"), lease }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("setQuota"), ...quotaScope, runs: limit, sandboxes: limit, weight }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("retireQuota"), ...quotaScope }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("resize"), pool, size: roomy(fc.integer({ min: 0, max: 10 })) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("cordon"), pool, resumes: fc.boolean() }) },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("uncordon"), pool }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("drain"), pool, withinSeconds: lasting }) },
  );
}
