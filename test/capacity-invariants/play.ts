import { setTimeout as wait } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { type Answer, refusalOf } from "./answers.ts";
import type { Call, Stage } from "./call.ts";
import { assemble, type CastPool } from "./cast.ts";
import { brokenDeadlines, brokenHistory, brokenNow, leftOver } from "./invariants.ts";
import { idleWaiters } from "./idle-waiters.ts";
import { createMemory, leaseOf } from "./memory.ts";
import { setPoolCall } from "./operator-calls.ts";
import { elapse } from "./passing-time.ts";
import { planner } from "./planner.ts";
import type { Run } from "./runs.ts";
import type { ServiceProcess } from "./service-process.ts";
import type { World } from "./world.ts";

/** Told of every answer in the order of the run, as in `acquire ACTIVE`. */
export type Told = (answer: string) => void;

/** A promise that didn't hold, with what was done last. */
export class BrokenPromise extends Error {
  override readonly name = "BrokenPromise";
}

/** How many of the last operations a failure shows. */
const SHOWN = 80;
/** The whole history is gone through once in so many bursts. */
const HISTORY_EVERY = 5;

/** Plays a run from an empty database to one that everybody has left. Throws BrokenPromise. */
export async function play(world: World, { room, bursts }: Run, told: Told): Promise<void> {
  await world.clear();
  const stage: Stage = { cast: assemble(uuidv7().slice(-8), room), memory: createMemory(), newId: uuidv7 };
  const said: string[] = [];
  const expectNothing = (wrong: readonly string[]) => {
    const all = [...world.broken.slice(heard), ...wrong];
    if (all.length > 0) throw new BrokenPromise([...all, "after:", ...said.slice(-SHOWN)].join("\n  "));
  };
  const heard = world.broken.length;
  const [first, second] = world.processes;
  const { database } = world;
  const plan = planner(stage);

  const open = async (pools: readonly CastPool[]) => {
    const opening = pools.map((pool) => setPoolCall(pool, stage));
    for (const call of opening) expectNothing(judged(call, await perform(call, first), told));
  };
  await open(stage.cast.pools);
  for (const [n, { calls, cut, elapseSeconds }] of bursts.entries()) {
    stage.memory.refresh(await world.live());
    const planned = calls.flatMap(({ process, operation }) => {
      const call = plan.of(operation);
      return call ? [{ process, call }] : [];
    });
    stage.memory.disturb(
      planned.flatMap(({ call }) => call.ends?.leaseIds ?? []),
      planned.flatMap(({ call }) => call.ends?.holders ?? []),
    );
    said.push(...planned.map(({ process, call }) => `[${n}${cut ? " cut" : ""}] ${process}: ${call.says}`));
    const answering = Promise.all(planned.map(({ process, call }) => perform(call, process === 0 ? first : second)));
    if (cut) await world.cutConnections();
    const answers = await answering;

    const wrong = planned.flatMap(({ call }, at) => judged(call, answers[at], told));
    plan.learn(planned.map(({ call }, at) => ({ call, lease: answers[at] && leaseOf(answers[at]) })));
    expectNothing(wrong);
    if (cut) await settled(world);
    expectNothing((await Promise.all([brokenNow(database), idleWaiters(database)])).flat());
    if (n % HISTORY_EVERY === 0) expectNothing([...(await brokenHistory(database)), ...(await first.differences())]);
    await open(await plan.drained(database));
    if (elapseSeconds > 0) {
      await elapse(database, elapseSeconds);
      said.push(`[${n}] ${elapseSeconds} s go by`);
    }
  }

  await settled(world);
  expectNothing([...(await brokenDeadlines(database, SLACK_SECONDS)), ...(await idleWaiters(database))]);
  await elapse(database, LONG_SECONDS);
  said.push("everything's time is over");
  await settled(world);
  expectNothing([
    ...(await brokenDeadlines(database, SLACK_SECONDS)),
    ...(await leftOver(database)),
    ...(await brokenHistory(database)),
    ...(await first.differences()),
  ]);
}

const SLACK_SECONDS = 5;
const LONG_SECONDS = 100_000;

/** All that is due has ended, and nothing is under way. */
async function settled({ processes }: World): Promise<void> {
  for (const service of processes) await perform(DEADLINES, service);
}

const DEADLINES: Call = {
  says: "all that is due",
  async run(service) {
    await service.runDeadlines();
    return { done: true };
  },
  refusals: [],
  judge: () => [],
};

const MOST_TRIES = 60;
const PAUSE_MS = 10;

/** Calls again what was unavailable, as callers do. */
async function perform(call: Call, service: ServiceProcess): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call.run(service);
    } catch (error) {
      const refusal = refusalOf(error) ?? { refused: "an error that nobody foresaw", text: inspected(error) };
      if (refusal.refused !== "Unavailable" || tries === MOST_TRIES) return refusal;
      await wait(PAUSE_MS);
    }
  }
}

function judged(call: Call, answer: Answer | undefined, told: Told): string[] {
  if (!answer) return [`${call.says} has no answer`];
  for (let time = 0; time < (call.times ?? 1); time += 1) told(kindOf(call, answer));
  const unforeseen = "refused" in answer && !call.refusals.includes(answer.refused);
  const wrong = unforeseen ? [`${call.says} came to ${answer.refused}: ${answer.text}`] : [];
  return [...wrong, ...call.judge(answer).map((text) => `${text} (${call.says})`)];
}

function kindOf({ says }: Call, answer: Answer): string {
  const [verb = ""] = says.split(" ");
  return `${verb} ${"refused" in answer ? answer.refused : (leaseOf(answer)?.state ?? "done")}`;
}

/** Where it came from too, unless it came over the wire: the service's log has that. */
function inspected(error: unknown): string {
  if (error instanceof ConnectError || !(error instanceof Error)) return String(error);
  return error.stack ?? error.message;
}
