import { once } from "node:events";
import net from "node:net";
import { PrismaClient } from "../../services/iac-provisioning/generated/prisma/client.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { type Database, openDatabase } from "@runtime-cloud/service-kit/database";
import { classifyDatabaseError, uniqueConstraint } from "@runtime-cloud/service-kit/database-errors";
import { StaleRow } from "@runtime-cloud/service-kit/errors";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { transact } from "@runtime-cloud/service-kit/transact";
import { emptyDatabase, type TestDatabase } from "../_support/database.ts";

let place: TestDatabase;
let database: Database<PrismaClient>;

beforeAll(async () => {
  place = await emptyDatabase();
  database = open(place.url);
  await database.pool.query(`
    CREATE TABLE inbox_receipt (
      event_id uuid, handler varchar(100), received_at timestamptz(3) DEFAULT now(),
      CONSTRAINT inbox_receipt_pkey PRIMARY KEY (event_id, handler)
    )`);
  await database.pool.query("CREATE TABLE counter (id text PRIMARY KEY, value int NOT NULL)");
});

beforeEach(async () => {
  await database.pool.query("TRUNCATE inbox_receipt, counter");
  await database.pool.query("INSERT INTO counter VALUES ('a', 0), ('b', 0)");
});

afterAll(async () => {
  await database.close();
  await place.drop();
});

function open(url: string, maxConnections = 10): Database<PrismaClient> {
  const options = { url, applicationName: "service-kit-test", maxConnections, onError: () => undefined };
  return openDatabase(options, (adapter) => new PrismaClient({ adapter }));
}

async function errorOf(work: Promise<unknown>): Promise<unknown> {
  const outcome = await work.then(
    () => ({ failed: false, error: undefined }),
    (error: unknown) => ({ failed: true, error }),
  );
  if (!outcome.failed) throw new Error("the call was expected to fail");
  return outcome.error;
}

const receipt = (handler = "TrackDeclared") => ({ eventId: uuidv7(), handler });

describe("classifyDatabaseError, on what PostgreSQL and Prisma really throw", () => {
  const serializable = { isolationLevel: "Serializable" } as const;

  test("a unique violation, by the ORM and by raw SQL, names its constraint", async () => {
    const row = receipt();
    await database.client.inboxReceipt.create({ data: row });
    const byOrm = await errorOf(database.client.inboxReceipt.create({ data: row }));
    const byRaw = await errorOf(database.client.$executeRaw`INSERT INTO counter VALUES ('a', 1)`);
    const byDriver = await errorOf(database.pool.query("INSERT INTO counter VALUES ('a', 1)"));
    expect([byOrm, byRaw, byDriver].map(classifyDatabaseError)).toEqual(["unique", "unique", "unique"]);
    expect([byOrm, byRaw, byDriver].map(uniqueConstraint)).toEqual([
      "inbox_receipt_pkey",
      "counter_pkey",
      "counter_pkey",
    ]);
  });

  test("a row that isn't there to be updated", async () => {
    const where = { eventId_handler: receipt() };
    const error = await errorOf(database.client.inboxReceipt.update({ where, data: { receivedAt: new Date(0) } }));
    expect(classifyDatabaseError(error)).toBe("missing");
    expect(uniqueConstraint(error)).toBeUndefined();
  });

  test("a serialization failure in a raw statement", async () => {
    const error = await errorOf(
      database.client.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT value FROM counter WHERE id = 'a'`;
        await database.pool.query("UPDATE counter SET value = value + 1 WHERE id = 'a'");
        await tx.$executeRaw`UPDATE counter SET value = value + 1 WHERE id = 'a'`;
      }, serializable),
    );
    expect(classifyDatabaseError(error)).toBe("conflict");
  });

  test("a serialization failure in an ORM statement", async () => {
    const row = receipt();
    await database.client.inboxReceipt.create({ data: row });
    const update = { where: { eventId_handler: row }, data: { receivedAt: new Date(0) } };
    const error = await errorOf(
      database.client.$transaction(async (tx) => {
        await tx.inboxReceipt.findMany();
        await database.client.inboxReceipt.update(update);
        await tx.inboxReceipt.update(update);
      }, serializable),
    );
    expect(classifyDatabaseError(error)).toBe("conflict");
  });

  test("a serialization failure at COMMIT", async () => {
    const crosswise = (mine: string, other: string, next: () => Promise<unknown>) =>
      database.client.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT value FROM counter WHERE id = ${other}`;
        await tx.$executeRaw`UPDATE counter SET value = value + 1 WHERE id = ${mine}`;
        await next();
      }, serializable);
    const error = await errorOf(crosswise("a", "b", () => crosswise("b", "a", () => Promise.resolve())));
    expect(classifyDatabaseError(error)).toBe("conflict");
  });

  test("a deadlock", async () => {
    const met = [signal(), signal()] as const;
    const lockBoth = (first: string, second: string, mine: 0 | 1) =>
      database.client.$transaction(async (tx) => {
        await tx.$executeRaw`UPDATE counter SET value = 1 WHERE id = ${first}`;
        met[mine].fire();
        await met[mine === 0 ? 1 : 0].fired;
        await tx.$executeRaw`UPDATE counter SET value = 1 WHERE id = ${second}`;
      });
    const error = await errorOf(Promise.all([lockBoth("a", "b", 0), lockBoth("b", "a", 1)]));
    expect(classifyDatabaseError(error)).toBe("conflict");
  });

  test("a lock that another transaction holds", async () => {
    const error = await errorOf(
      database.client.$transaction(async (tx) => {
        await tx.$executeRaw`SELECT 1 FROM counter WHERE id = 'a' FOR UPDATE`;
        await database.client.$queryRaw`SELECT 1 FROM counter WHERE id = 'a' FOR UPDATE NOWAIT`;
      }),
    );
    expect(classifyDatabaseError(error)).toBe("conflict");
  });

  test("a backend that is terminated during a statement, and one between two statements", async () => {
    const during = await errorOf(database.client.$queryRaw`SELECT pg_terminate_backend(pg_backend_pid())`);
    expect(classifyDatabaseError(during)).toBe("outcome-unknown");
    const between = await errorOf(
      database.client.$transaction(async (tx) => {
        const [backend] = await tx.$queryRaw<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
        await database.pool.query("SELECT pg_terminate_backend($1, 5000)", [backend?.pid]);
        await tx.$executeRaw`UPDATE counter SET value = 1 WHERE id = 'a'`;
      }),
    );
    expect(["unreachable", "outcome-unknown"]).toContain(classifyDatabaseError(between));
  });

  test("a commit whose answer got lost, though the row is there", async () => {
    const { port, close } = await proxyThatLosesCommits(place.url);
    const url = new URL(place.url);
    url.port = String(port);
    const through = open(url.href);
    const row = receipt();
    const error = await errorOf(through.client.$transaction((tx) => tx.inboxReceipt.create({ data: row })));
    expect(classifyDatabaseError(error)).toBe("outcome-unknown");
    expect(await database.client.inboxReceipt.count({ where: row })).toBe(1);
    await through.close();
    close();
  });

  test("a statement that takes too long", async () => {
    const slow = database.client.$transaction(async (tx) => {
      await tx.$executeRaw`SET LOCAL statement_timeout = 50`;
      await tx.$queryRaw`SELECT 1 FROM pg_sleep(5)`;
    });
    expect(classifyDatabaseError(await errorOf(slow))).toBe("unreachable");
  });

  test("a server that isn't there, and a pool without a free connection", async () => {
    const nowhere = open("postgres://app@127.0.0.1:1/app");
    expect(classifyDatabaseError(await errorOf(nowhere.client.inboxReceipt.count()))).toBe("unreachable");
    await nowhere.close();
    const small = open(place.url, 1);
    const held = await small.pool.connect();
    expect(classifyDatabaseError(await errorOf(small.client.inboxReceipt.count()))).toBe("unreachable");
    held.release();
    await small.close();
  });

  test.each([
    ["an error of our own", new Error("anything")],
    ["nothing", undefined],
    ["a text", "Connection terminated"],
    ["a code that is a number", { code: 42 }],
  ])("something else: %s", (_name, error) => {
    expect(classifyDatabaseError(error)).toBe("other");
  });
});

describe("transact", () => {
  test("does the work again when it lost a race, until it wins: no increment is lost", async () => {
    const writers = Array.from({ length: 4 }, () =>
      transact(
        database.client,
        async (tx) => {
          const [row] = await tx.$queryRaw<{ value: number }[]>`SELECT value FROM counter WHERE id = 'a'`;
          if (!row) throw new Error("the counter is gone");
          await tx.$executeRaw`UPDATE counter SET value = ${row.value + 1} WHERE id = 'a'`;
        },
        { isolationLevel: "RepeatableRead", tries: 20 },
      ),
    );
    await Promise.all(writers);
    const { rows } = await database.pool.query("SELECT value FROM counter WHERE id = 'a'");
    expect(rows).toEqual([{ value: 4 }]);
  });

  test("reads and decides again on a stale row, and rolls the lost try back", async () => {
    let tries = 0;
    const result = await transact(database.client, async (tx) => {
      tries += 1;
      await tx.inboxReceipt.create({ data: receipt(`try ${tries}`) });
      if (tries < 3) throw new StaleRow("moved");
      return "done";
    });
    expect({ result, tries }).toEqual({ result: "done", tries: 3 });
    expect(await database.client.inboxReceipt.findMany()).toMatchObject([{ handler: "try 3" }]);
  });

  test("gives up after five tries with the last refusal", async () => {
    const work = jest.fn(() => Promise.reject(new StaleRow("moved again")));
    await expect(transact(database.client, work, { random: () => 0 })).rejects.toThrow("moved again");
    expect(work).toHaveBeenCalledTimes(5);
  });

  test.each([
    ["a lost connection", new Error("Connection terminated unexpectedly")],
    ["a refusal", new Error("no")],
  ])("does nothing again after %s", async (_name, error) => {
    const work = jest.fn(() => Promise.reject(error));
    await expect(transact(database.client, work)).rejects.toBe(error);
    expect(work).toHaveBeenCalledTimes(1);
  });
});

describe("openDatabase", () => {
  const opened: Database<PrismaClient>[] = [];

  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });

  test("bounds what a connection may do, and names itself", async () => {
    const settings = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "application_name"];
    const { rows } = await database.pool.query("SELECT name, setting FROM pg_settings WHERE name = ANY($1)", [
      settings,
    ]);
    expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
      statement_timeout: "8000",
      lock_timeout: "3000",
      idle_in_transaction_session_timeout: "15000",
      application_name: "service-kit-test",
    });
  });

  test("prepares a statement once, and keeps a bounded number of them", async () => {
    const one = open(place.url, 1);
    opened.push(one);
    for (let count = 0; count < 3; count += 1) await one.client.inboxReceipt.count({ where: { handler: "x" } });
    const prepared = "SELECT count(*)::int AS count FROM pg_prepared_statements";
    expect((await one.pool.query(prepared)).rows).toEqual([{ count: 1 }]);
    for (let length = 1; length <= 600; length += 1) {
      const handlers = Array.from({ length }, (_, index) => `h${index}`);
      await one.client.inboxReceipt.count({ where: { handler: { in: handlers } } });
    }
    expect((await one.pool.query(prepared)).rows).toEqual([{ count: 500 }]);
  });

  test("closes whether or not it was used", async () => {
    const unused = open(place.url);
    await unused.close();
    expect(unused.pool.ended).toBe(true);
    const used = open(place.url);
    await used.client.inboxReceipt.count();
    await used.close();
    expect(used.pool.ended).toBe(true);
  });

  test("reports a connection that breaks while it is idle, and goes on", async () => {
    const errors: Error[] = [];
    const broken = signal();
    const watched = openDatabase(
      {
        url: place.url,
        applicationName: "watched",
        onError: (error) => {
          errors.push(error);
          broken.fire();
        },
      },
      (adapter) => new PrismaClient({ adapter }),
    );
    opened.push(watched);
    await watched.client.inboxReceipt.count();
    await database.pool.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'watched'",
    );
    await broken.fired;
    expect(await watched.client.inboxReceipt.count()).toBe(0);
  });
});

function signal() {
  let fire = () => {};
  const fired = new Promise<void>((resolve) => (fire = resolve));
  return { fired, fire: () => fire() };
}

/** Passes everything on, but when the server has answered a COMMIT it cuts the client off instead. */
async function proxyThatLosesCommits(databaseUrl: string) {
  const { hostname, port } = new URL(databaseUrl);
  const sockets = new Set<net.Socket>();
  const proxy = net.createServer((client) => {
    const server = net.connect(Number(port), hostname);
    let committing = false;
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    client.on("data", (bytes) => {
      committing ||= bytes.includes("COMMIT");
      server.write(bytes);
    });
    server.on("data", (bytes) => (committing ? client.destroy() : client.write(bytes)));
    client.on("close", () => server.destroy());
    server.on("close", () => client.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    close: () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}
