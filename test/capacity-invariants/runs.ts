import fc from "fast-check";
import {
  AMPLE,
  deskStep,
  ELAPSE_STEP_SECONDS,
  endStep,
  type Operation,
  operatorStep,
  plainStep,
  type Room,
  TIGHT,
} from "./operations.ts";

/** What happens between an empty database and one that everybody has left. */
export interface Run {
  room: Room;
  bursts: Burst[];
}

/** Operations that come at once, each at one of the processes. */
export interface Burst {
  calls: BurstCall[];
  /** Connections to the database are cut in the midst of it. */
  cut: boolean;
  /** Goes by once it is over. */
  elapseSeconds: number;
}

interface BurstCall {
  process: number;
  operation: Operation;
}

/** Operations of one desk are decided in batches: so a burst may well be a large one. */
const LARGEST_BURST = 256;
const SMALLEST_BURST = 64;
/** Well below the mean of a burst's size, so that runs have no fewer operations than they were asked for. */
const SMALL_MEAN = 120;
/** An operator's command costs as much as some dozens of a desk's operations. */
const MOST_COMMANDS = 5;
/** Holders that end together. */
const MOST_ENDS = 8;
/** The same operations come again and again, all at once. */
const MOST_COPIES = 16;
/** One burst in so many. */
const CUT_IN = 12;

/** Runs of `operations` operations or a few more, in large bursts: tight ones, and ones with ample room. */
export function runsAtOnce(operations: number): fc.Arbitrary<Run> {
  const count = Math.ceil(operations / SMALL_MEAN);
  return fc.oneof(...[TIGHT, AMPLE].map((room) => runIn(room, count)));
}

function runIn(room: Room, count: number): fc.Arbitrary<Run> {
  const desk = called(deskStep(room));
  const burst = fc.record({
    desk: fc.oneof(
      { weight: 3, arbitrary: many(desk, SMALLEST_BURST, LARGEST_BURST) },
      { weight: room === TIGHT ? 1 : 4, arbitrary: many(called(plainStep(room)), SMALLEST_BURST, LARGEST_BURST) },
      { weight: 1, arbitrary: copies(desk) },
    ),
    commands: many(called(operatorStep(room)), 0, MOST_COMMANDS),
    ends: fc.oneof(
      { weight: 5, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: many(called(endStep(room)), 1, MOST_ENDS) },
    ),
    sweep: fc.option(called(fc.constant(DEADLINES))),
    /** All at one process, which then knows what the other doesn't; or at both. */
    only: fc.constantFrom(0, 1, undefined, undefined),
    cut: fc.nat({ max: CUT_IN - 1 }).map((dice) => dice === 0),
    elapseSeconds,
  });
  return fc.array(burst, { minLength: count, maxLength: count, size: "max" }).map((bursts) => ({
    room,
    bursts: bursts.map(({ desk, commands, ends, sweep, only, cut, elapseSeconds: seconds }, place) => {
      // Without it nothing has become due since the last sweep.
      const elapsed = (bursts[place - 1]?.elapseSeconds ?? 0) > 0;
      const others = [...commands, ...ends, ...(sweep && elapsed ? [sweep] : [])];
      const calls = [...others, ...desk.map(({ process, operation }) => ({ process: only ?? process, operation }))];
      return { calls, cut, elapseSeconds: seconds };
    }),
  }));
}

function called(operation: fc.Arbitrary<Operation>): fc.Arbitrary<BurstCall> {
  return fc.record({ process: fc.nat({ max: 1 }), operation });
}

const DEADLINES: Operation = { kind: "deadlines" };
const elapseSeconds = fc.constantFrom(0, 0, 0, 0, 1, 2).map((steps) => steps * ELAPSE_STEP_SECONDS);

function many<Step>(step: fc.Arbitrary<Step>, minLength: number, maxLength: number): fc.Arbitrary<Step[]> {
  return fc.array(step, { minLength, maxLength, size: "max" });
}

/** Each copy at a process of its own. */
function copies(call: fc.Arbitrary<BurstCall>): fc.Arbitrary<BurstCall[]> {
  const some = many(call, SMALLEST_BURST / 4, LARGEST_BURST / MOST_COPIES);
  return fc
    .tuple(some, fc.integer({ min: 4, max: MOST_COPIES }))
    .map(([calls, times]) =>
      Array.from({ length: times }, (_, copy) =>
        calls.map(({ process, operation }) => ({ process: (process + copy) % 2, operation })),
      ).flat(),
    );
}

const anyStep = fc.oneof(
  { weight: 76, arbitrary: deskStep(TIGHT) },
  { weight: 22, arbitrary: operatorStep(TIGHT) },
  { weight: 2, arbitrary: fc.constant(DEADLINES) },
);

/** One after the other, few enough that a failure shrinks to what matters. */
export const oneByOne: fc.Arbitrary<Run> = fc
  .array(
    fc.record({
      calls: fc.tuple(called(anyStep)).map((call) => [...call]),
      cut: fc.constant(false),
      elapseSeconds,
    }),
    { minLength: 1, maxLength: 40, size: "max" },
  )
  .map((bursts) => ({ room: TIGHT, bursts }));
