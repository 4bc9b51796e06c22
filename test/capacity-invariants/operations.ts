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

/** Operations that come at once, each at one of the processes. */
export interface Burst {
  calls: { process: number; operation: Operation }[];
  /** Connections to the database are cut in the midst of it. */
  cut: boolean;
  /** Goes by once it is over. */
  elapseSeconds: number;
}

/**
 * Lives and waits end halfway between the steps in which time goes by, so that what is due is due by 50 s and what
 * isn't has as long to go: a slow run decides the same.
 */
const ELAPSE_STEP_SECONDS = 100;
const lasting = fc.integer({ min: 0, max: 4 }).map((steps) => steps * ELAPSE_STEP_SECONDS + ELAPSE_STEP_SECONDS / 2);

const tenant = fc.nat({ max: 3 });
const project = fc.nat({ max: 2 });
const holder = fc.nat({ max: 23 });
const pool = fc.nat({ max: 6 });
const lease = fc.nat({ max: 40 });
const kindName = fc.constantFrom<PoolKindName>("RUN_WORKERS", "SANDBOX_HOSTS", "GENERAL");

const acquire: fc.Arbitrary<AcquireStep> = fc.record({
  kind: fc.constant("acquire"),
  tenant,
  project,
  holder,
  late: fc.nat({ max: 9 }).map((dice) => dice === 0),
  target: fc.oneof(
    { weight: 3, arbitrary: fc.record({ pool }) },
    {
      weight: 1,
      arbitrary: fc.record({
        selector: fc.record({
          kind: kindName,
          zone: fc.constantFrom("a", "b", null),
          placement: fc.constantFrom("PACK", "SPREAD"),
        }),
      }),
    },
  ),
  resource: fc.constantFrom("RUNS", "SANDBOXES"),
  units: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.integer({ min: 2, max: 4 }) }),
  priority: fc.constantFrom(0, 0, 5, 1000),
  ttlSeconds: lasting,
  waitSeconds: fc.oneof({ weight: 3, arbitrary: lasting }, { weight: 1, arbitrary: fc.constant(0) }),
});

const token = fc.constantFrom<Token>("right", "right", "right", "stale", "unknown");
const limit = fc.oneof(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 8, max: 40 }));
const quotaScope = { tenant, project: fc.option(project, { freq: 2 }) };

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 40, arbitrary: acquire },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("repeat"), back: fc.nat({ max: 12 }) }) },
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant("renew"), lease, token, ttlSeconds: lasting }),
  },
  {
    weight: 26,
    arbitrary: fc.record({ kind: fc.constant("release"), lease, token: fc.oneof(token, fc.constant("none" as const)) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("revoke"), lease }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("look"), lease }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("endHolder"),
      tenant,
      holder,
      deliveries: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("setQuota"),
      ...quotaScope,
      runs: limit,
      sandboxes: limit,
      weight: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("retireQuota"), ...quotaScope }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("resize"), pool, size: fc.integer({ min: 0, max: 10 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("cordon"), pool, resumes: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("uncordon"), pool }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("drain"), pool, withinSeconds: lasting }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("deadlines") }) },
);

/** Runs of `operations` operations or a few more, in bursts of up to 96. */
export function bursts({ operations, cuts }: { operations: number; cuts: boolean }): fc.Arbitrary<Burst[]> {
  const burst = fc.record({
    calls: fc.array(fc.record({ process: fc.nat({ max: 1 }), operation }), {
      minLength: LARGEST_BURST / 4,
      maxLength: LARGEST_BURST,
      size: "max",
    }),
    cut: fc.nat({ max: CUT_IN - 1 }).map((dice) => cuts && dice === 0),
    elapseSeconds: fc.constantFrom(0, 0, 0, 0, 1, 2).map((steps) => steps * ELAPSE_STEP_SECONDS),
  });
  const count = Math.ceil(operations / SMALL_MEAN);
  return fc.array(burst, { minLength: count, maxLength: count, size: "max" });
}

const LARGEST_BURST = 96;
/** Well below the mean of a burst's size, so that runs have no fewer operations than they were asked for. */
const SMALL_MEAN = 52;
/** One burst in so many. */
const CUT_IN = 12;

/** One after the other, few enough that a failure shrinks to what matters. */
export const oneByOne: fc.Arbitrary<Burst[]> = fc.array(
  fc.record({
    calls: fc.tuple(fc.record({ process: fc.nat({ max: 1 }), operation })).map((call) => [...call]),
    cut: fc.constant(false),
    elapseSeconds: fc.constantFrom(0, 0, 0, 0, 0, 1, 2).map((steps) => steps * ELAPSE_STEP_SECONDS),
  }),
  { minLength: 1, maxLength: 40, size: "max" },
);
