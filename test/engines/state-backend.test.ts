import { lockState, readState, unlockState, writeState } from "@runtime-cloud/iac-provisioning/engines/state-client";
import type { StateKey } from "@runtime-cloud/iac-provisioning/state/state-key";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { request } from "node:http";

import { openBench, type EngineBench } from "./engine-bench.ts";

let bench: EngineBench;
beforeAll(async () => {
  bench = await openBench();
});
afterAll(async () => {
  expect(bench.backendErrors).toEqual([]);
  await bench.close();
});

test("a state is absent, then what was last written, and absent again once it is removed", async () => {
  const run = await writer(newKey());
  expect(await readState(run)).toEqual({ identity: { lineage: "", serial: 0 }, text: "" });

  await lockState(run, "lock", "test");
  await writeState(run, "lock", state("a", 1));
  await writeState(run, "lock", state("a", 2, "two"));
  expect(await readState(run)).toEqual({ identity: { lineage: "a", serial: 2 }, text: state("a", 2, "two") });

  expect(await call(run, "DELETE", "?ID=lock")).toMatchObject({ status: 200 });
  expect((await readState(run)).text).toBe("");
  await writeState(run, "lock", state("b", 1));
  expect((await readState(run)).identity).toEqual({ lineage: "b", serial: 1 });
});

test("the newest hundred versions are kept, and older ones go by and by as new ones come", async () => {
  const key = newKey();
  const run = await writer(key);
  await lockState(run, "lock", "test");
  await writeState(run, "lock", state("a", 1));
  await bench.pool.query(
    `INSERT INTO engine_state_version
     SELECT tenant_id, environment_id, kind, 'former', number, digest, sealed, run_id, epoch,
       written_at - interval '1 day' + number * interval '1 second'
     FROM engine_state_version, generate_series(1, 120) number WHERE environment_id = $1`,
    [key.environmentId],
  );
  const kept = async () => {
    const { rows } = await bench.pool.query<{ lineage: string; serial: number }>(
      "SELECT lineage, serial FROM engine_state_version WHERE environment_id = $1 ORDER BY written_at",
      [key.environmentId],
    );
    return rows.map(({ lineage, serial }) => `${lineage} ${serial}`);
  };
  expect(await call(run, "POST", "?ID=lock", state("a", 1, "refused"))).toMatchObject({ status: 409 });
  expect(await kept()).toHaveLength(121);
  for (const serial of [2, 3, 4, 5]) await writeState(run, "lock", state("a", serial));
  expect(await kept()).toHaveLength(100);
  expect((await kept()).slice(-6)).toEqual(["former 120", "a 1", "a 2", "a 3", "a 4", "a 5"]);
  expect((await readState(run)).identity).toEqual({ lineage: "a", serial: 5 });
});

test("a state that is too large is refused with 413 and the bound, before it is read", async () => {
  const run = await writer(newKey());
  await lockState(run, "lock", "test");
  const length = 64 * 1024 * 1024 + 1;
  const refused = await call(run, "POST", "?ID=lock", "{", length);
  expect(refused).toEqual({ status: 413, text: `the body is larger than ${length - 1} bytes` });
  expect((await readState(run)).text).toBe("");
});

test("every version is sealed, with the run that wrote it", async () => {
  const key = newKey();
  const run = await writer(key);
  await lockState(run, "lock", "test");
  await writeState(run, "lock", state("a", 1, "first-content"));
  await writeState(run, "lock", state("a", 4, "second-content"));
  const { rows } = await bench.pool.query<{ serial: number; run_id: string; sealed: Buffer }>(
    "SELECT serial, run_id, sealed FROM engine_state_version WHERE environment_id = $1 ORDER BY serial",
    [key.environmentId],
  );
  expect(rows.map(({ serial, run_id }) => [serial, run_id])).toEqual([
    [1, run.username],
    [4, run.username],
  ]);
  for (const { sealed } of rows) expect(sealed.toString("latin1")).not.toContain("content");
});

test("a lower serial, the same serial with other content, and another lineage are refused with 409", async () => {
  const run = await writer(newKey());
  await lockState(run, "lock", "test");
  await writeState(run, "lock", state("a", 5));
  await writeState(run, "lock", state("a", 5));
  for (const text of [state("a", 4), state("a", 5, "other"), state("b", 6)]) {
    expect(await call(run, "POST", "?ID=lock", text)).toMatchObject({ status: 409 });
  }
  expect((await readState(run)).text).toBe(state("a", 5));
});

test("of two first writes under one lock's two claims only one history begins", async () => {
  const run = await writer(newKey());
  await lockState(run, "lock", "test");
  const answers = await Promise.all(
    ["a", "b", "c", "d"].map((lineage) => call(run, "POST", "?ID=lock", state(lineage, 1))),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
});

test("a write without the lock, or under another lock id, is refused with 409", async () => {
  const run = await writer(newKey());
  expect(await call(run, "POST", "", state("a", 1))).toMatchObject({ status: 409 });
  await lockState(run, "lock", "test");
  expect(await call(run, "POST", "?ID=other", state("a", 1))).toMatchObject({ status: 409 });
  await unlockState(run, "lock", "test");
  expect(await call(run, "POST", "?ID=lock", state("a", 1))).toMatchObject({ status: 409 });
});

test("a lock that another run holds is refused with 423 and its holder, and only the holder releases it", async () => {
  const key = newKey();
  const [one, two] = [await writer(key), await writer(key)];
  await lockState(one, "lock-of-one", "apply");
  const refused = await call(two, "LOCK", "", JSON.stringify({ ID: "lock-of-two" }));
  expect(refused.status).toBe(423);
  expect(JSON.parse(refused.text)).toMatchObject({ ID: "lock-of-one", Operation: "apply" });
  expect(await call(two, "UNLOCK", "", JSON.stringify({ ID: "lock-of-one" }))).toMatchObject({ status: 423 });
  await unlockState(one, "lock-of-one", "apply");
  await lockState(two, "lock-of-two", "apply");
});

test("a run's next epoch takes its lock over, and the one before writes no more", async () => {
  const key = newKey();
  const before = await writer(key);
  await lockState(before, "before", "apply");
  const after = await writer(key, before.username, 2);

  expect(await call(before, "POST", "?ID=before", state("a", 1))).toMatchObject({ status: 401 });
  await lockState(after, "after", "apply");
  await writeState(after, "after", state("a", 1));
  expect(await bench.credentials.grant({ holderId: before.username, key, epoch: 1, access: "write" })).toBeUndefined();
});

test("the lock of a dead run can be broken, by its name only", async () => {
  const key = newKey();
  const [dead, next] = [await writer(key), await writer(key)];
  await lockState(dead, "dead", "apply");
  expect(await bench.store.breakLock(key, "another-run")).toBe(false);
  expect(await bench.store.breakLock(key, dead.username)).toBe(true);
  await lockState(next, "next", "apply");
});

test("no, a wrong or a revoked credential is refused with 401, and reads nothing", async () => {
  const key = newKey();
  const run = await writer(key);
  await lockState(run, "lock", "test");
  await writeState(run, "lock", state("a", 1));

  expect(await call({ ...run, password: "wrong" }, "GET")).toMatchObject({ status: 401 });
  expect(await call({ ...run, username: "", password: "" }, "GET")).toMatchObject({ status: 401 });
  await bench.credentials.revoke(run.username);
  expect(await call(run, "GET")).toMatchObject({ status: 401 });
});

test("a read-only credential reads and is refused all else with 403", async () => {
  const key = newKey();
  const holderId = randomUUID();
  const password = await bench.credentials.grant({ holderId, key, epoch: 0, access: "read" });
  const observer = { address: bench.address, username: holderId, password: password ?? "" };
  expect(await call(observer, "GET")).toMatchObject({ status: 404 });
  for (const method of ["POST", "LOCK", "UNLOCK", "DELETE"]) {
    expect(await call(observer, method, "?ID=x", state("a", 1))).toMatchObject({ status: 403 });
  }
});

test("one run's credential opens its own state only", async () => {
  const [one, other] = [await writer(newKey()), await writer(newKey())];
  await lockState(one, "lock", "test");
  await writeState(one, "lock", state("a", 1));
  expect(await call(other, "GET")).toMatchObject({ status: 404 });
});

test("what is no state, no lock, no path or no method is refused and changes nothing", async () => {
  const run = await writer(newKey());
  expect(await call(run, "LOCK", "", "not json")).toMatchObject({ status: 400 });
  await lockState(run, "lock", "test");
  expect(await call(run, "POST", "?ID=lock", "[]")).toMatchObject({ status: 400 });
  expect(await call(run, "POST", "?ID=lock", '{"lineage":"a","serial":-1}')).toMatchObject({ status: 400 });
  expect(await call(run, "LOCK", "", " ".repeat(20 * 1024))).toMatchObject({ status: 413 });
  expect(await call(run, "PATCH")).toMatchObject({ status: 405 });
  expect(await call({ ...run, address: `${bench.address}/other` }, "GET")).toMatchObject({ status: 404 });
  expect((await readState(run)).text).toBe("");
});

interface Access {
  readonly address: string;
  readonly username: string;
  readonly password: string;
}

function newKey(): StateKey {
  return { tenantId: "tenant", environmentId: randomUUID(), kind: "RELEASE" };
}

async function writer(key: StateKey, holderId: string = randomUUID(), epoch = 1): Promise<Access> {
  const password = await bench.credentials.grant({ holderId, key, epoch, access: "write" });
  if (password === undefined) throw new Error("refused");
  return { address: bench.address, username: holderId, password };
}

function state(lineage: string, serial: number, content = ""): string {
  return JSON.stringify({ version: 4, lineage, serial, content });
}

function call(
  access: Access,
  method: string,
  query = "",
  body = "",
  length = body.length,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${access.address}${query}`,
      {
        method,
        agent: false,
        auth: `${access.username}:${access.password}`,
        headers: { "content-length": length },
      },
      (incoming) => {
        let text = "";
        incoming.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        incoming.on("end", () => {
          resolve({ status: incoming.statusCode ?? 0, text });
          outgoing.destroy();
        });
      },
    );
    outgoing.on("error", reject);
    if (length === body.length) outgoing.end(body);
    else outgoing.write(body);
  });
}
