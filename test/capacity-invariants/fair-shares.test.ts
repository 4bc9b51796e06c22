import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import fc from "fast-check";
import { amount } from "./amount.ts";
import { assemble } from "./cast.ts";
import { backlog, type Flow } from "./backlog.ts";
import { hold } from "./hold.ts";
import { openWorld, type World } from "./world.ts";

const RUNS = 3;
const LARGEST_UNITS = 4;
const TEST_MS = 90_000;
/** Of sums of fractions. */
const ROUNDING = 1e-9;

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

const contest = fc.record({
  size: fc.integer({ min: LARGEST_UNITS, max: 12 }),
  weights: fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 })),
  /** Of the first tenant, which may try to get more by spreading out. */
  projects: fc.integer({ min: 1, max: 3 }),
  units: fc.array(fc.integer({ min: 1, max: LARGEST_UNITS }), { minLength: 40, maxLength: 40, size: "max" }),
  /** Which of the leases that are held are given back, turn by turn. */
  releases: fc.array(fc.array(fc.nat({ max: 11 }), { minLength: 1, maxLength: 4 }), {
    minLength: 60,
    maxLength: 60,
    size: "max",
  }),
});

test(
  "tenants that always have somebody waiting are served by weight, to within one largest request, over all projects",
  () =>
    hold({
      input: contest,
      runs: RUNS * amount.factor,
      async by({ size, weights, projects, units, releases }) {
        await world.clear();
        const { tenants } = assemble(uuidv7().slice(-8));
        const [whale = "", minnow = ""] = tenants;
        const flows: Flow[] = [
          ...Array.from({ length: projects }, (_, n) => ({ tenantId: whale, projectId: `p${n}` })),
          { tenantId: minnow, projectId: "p0" },
        ];
        const [heavy, light] = weights;
        const shares = [
          { tenantId: whale, weight: heavy },
          { tenantId: minnow, weight: light },
        ];
        const grants = await backlog(world, { size, shares, flows, units, releases });
        expect(grants.length).toBeGreaterThan(releases.length);

        const within = LARGEST_UNITS / Math.min(heavy, light) + ROUNDING;
        expect(widestGap(grants, ({ tenantId }) => tenantId, { [whale]: heavy, [minnow]: light })).toBeLessThanOrEqual(
          within,
        );
        const inside = Object.fromEntries(Array.from({ length: projects }, (_, n) => [`p${n}`, 1]));
        const ofWhale = grants.filter(({ tenantId }) => tenantId === whale);
        expect(widestGap(ofWhale, ({ projectId }) => projectId, inside)).toBeLessThanOrEqual(LARGEST_UNITS + ROUNDING);
        expect(world.broken).toEqual([]);
      },
    }),
  TEST_MS * amount.factor,
);

/** By how much the weighted service of two flows differed at most, at any moment. */
function widestGap<Grant extends { units: number }>(
  grants: readonly Grant[],
  flowOf: (grant: Grant) => string,
  weights: Readonly<Record<string, number>>,
): number {
  const served = new Map(Object.keys(weights).map((flow) => [flow, 0]));
  let widest = 0;
  for (const grant of grants) {
    const flow = flowOf(grant);
    served.set(flow, (served.get(flow) ?? 0) + grant.units / (weights[flow] ?? 1));
    widest = Math.max(widest, Math.max(...served.values()) - Math.min(...served.values()));
  }
  return widest;
}
