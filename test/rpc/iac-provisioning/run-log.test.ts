import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { RunLost } from "@runtime-cloud/iac-provisioning/execution/held-run";
import { LogCut } from "@runtime-cloud/iac-provisioning/run-streams/log-cut";
import { openRunLog } from "@runtime-cloud/iac-provisioning/run-streams/run-log";
import { until } from "@runtime-cloud/local-servers/until";
import { declare, type IacService, plan, startIacProvisioning, webService } from "../../_support/iac-provisioning.ts";

let service: IacService;
beforeAll(async () => {
  service = await startIacProvisioning();
});
afterAll(() => service.close());

/** A run that an executor holds. */
async function heldRun() {
  const client = service.as("t1");
  const id = await plan(client, await declare(client, webService(await service.environment("t1"))));
  const run = await service.database.provisioningRun.update({
    where: { id },
    data: { state: "PLANNING", executorEpoch: 1 },
  });
  return { run };
}

const line = (text: string, isError = false) => ({ text, isError });
const logged = async (runId: string) => {
  const lines = await service.database.runLogLine.findMany({ where: { runId }, orderBy: { number: "asc" } });
  return lines.map(({ number, text }) => `${number}: ${text}`);
};

test("goes on with the number after an executor before it", async () => {
  const held = await heldRun();
  const first = await openRunLog(service.context, held);
  await first.add(line("one"));
  await first.flush();
  const second = await openRunLog(service.context, held);
  await second.add(line("two"));
  await second.flush();
  expect(await logged(held.run.id)).toEqual(["1: one", "2: two"]);
});

test("writes a line once that was written before without an answer", async () => {
  const held = await heldRun();
  const log = await openRunLog(service.context, held);
  await service.database.runLogLine.create({
    data: { runId: held.run.id, number: 1, text: "one", at: service.context.clock.now() },
  });
  await log.add(line("one"));
  await log.add(line("two"));
  await log.flush();
  expect(await logged(held.run.id)).toEqual(["1: one", "2: two"]);
});

test("lets an executor say nothing more once another one holds the run, or it has ended", async () => {
  for (const change of [{ executorEpoch: 2 }, { state: "FAILED" }] as const) {
    const held = await heldRun();
    const log = await openRunLog(service.context, held);
    await service.database.provisioningRun.update({ where: { id: held.run.id }, data: change });
    await log.add(line("late"));
    await expect(log.flush()).rejects.toThrow(RunLost);
    await expect(log.add(line("later"))).rejects.toThrow(RunLost);
    expect(await logged(held.run.id)).toEqual([]);
  }
});

test("holds up whoever says more than can be written, and loses nothing of it", async () => {
  const held = await heldRun();
  const log = await openRunLog(service.context, held);
  const connection = await service.context.pool.connect();
  let added = 0;
  let adding: Promise<void> = Promise.resolve();
  try {
    await connection.query("BEGIN");
    await connection.query("SELECT FROM provisioning_run WHERE id = $1 FOR UPDATE", [held.run.id]);
    adding = (async () => {
      for (; added < 2_000; added += 1) await log.add(line(`line ${added + 1}`));
    })();
    await until("a write that waits", 5_000, async () => {
      const { rows } = await service.context.pool.query(
        "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%run_log_line%'",
      );
      return rows.length > 0 || undefined;
    });
    expect(added).toBeLessThan(1_000);
    await connection.query("COMMIT");
  } finally {
    connection.release();
  }
  await adding;
  await log.flush();
  const lines = await logged(held.run.id);
  expect(lines).toHaveLength(2_000);
  expect(lines.at(-1)).toBe("2000: line 2000");
});

/** What is written of `count` lines. */
function cutOf(cut: LogCut, count: number, isError: (number: number) => boolean = () => false): string[] {
  const written: string[] = [];
  for (let number = 1; number <= count; number += 1) written.push(...cut.take(line(`${number}`, isError(number))));
  return [...written, ...cut.end()];
}
const upTo = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}`);

test("leaves nothing out of a log that is no longer than it may be", () => {
  expect(cutOf(new LogCut({ lines: 0, bytes: 0 }), 10_500)).toEqual(upTo(10_500));
});

test("leaves a later phase half of what there was, and its end whatever there was", () => {
  const later = cutOf(new LogCut({ lines: 10_000, bytes: 1_000 }), 6_000);
  expect(later.slice(0, 5_000)).toEqual(upTo(5_000));
  expect(later.slice(5_000, 5_002)).toEqual([
    "(the log is cut here: of what follows, errors and the last 500 lines are kept)",
    "(500 lines are left out before these, the last ones)",
  ]);
  expect(later.slice(5_002)).toEqual(upTo(6_000).slice(-500));
  const last = cutOf(new LogCut({ lines: 30_000, bytes: 0 }), 1_000);
  expect(last.slice(2)).toEqual(upTo(1_000).slice(-500));
});

test("bounds a log of long lines by their size, and its errors too", () => {
  const long = "x".repeat(4_096);
  const cut = new LogCut({ lines: 0, bytes: 0 });
  let bytes = 0;
  for (let number = 0; number < 30_000; number += 1) {
    for (const text of cut.take(line(long, true))) bytes += text.length;
  }
  for (const text of cut.end()) bytes += text.length;
  expect(bytes).toBeGreaterThan(10 * 1_024 * 1_024);
  expect(bytes).toBeLessThan(12 * 1_024 * 1_024);
});
