import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { planned, play } from "./engine-bench.ts";
import { engineIn, limited, NOBODY, openSandboxBench, SEARCH_PATH, type SandboxBench } from "./sandbox-bench.ts";

const PROBE = fileURLToPath(new URL("network-probe.ts", import.meta.url));

let sandbox: SandboxBench;
let listener: Server;
let listenerPort: number;
beforeAll(async () => {
  sandbox = await openSandboxBench();
  listener = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const bound = listener.address();
  if (bound === null || typeof bound === "string") throw new Error("the listener has no port");
  listenerPort = bound.port;
});
afterAll(async () => {
  listener.close();
  await sandbox.close();
});

describe("network: none", () => {
  const reaching = () => `(exec 3<>/dev/tcp/127.0.0.1/${listenerPort}) && echo got-through || echo cut-off`;

  test("the program reaches nothing but its own state, with which it plans and applies", async () => {
    const [open, cut] = [
      await sandbox.shellProgram("reaching", reaching()),
      await sandbox.shellProgram("cut", reaching(), "network: none\n"),
    ];
    expect((await sandbox.apply(open, engineIn({ user: NOBODY }))).said).toMatch(/^got-through$/m);

    const { outcome, said, job } = await sandbox.apply(cut, engineIn({ user: NOBODY, limits: await limited() }));
    expect(outcome.result).toBe("applied");
    expect(said).toMatch(/^cut-off$/m);
    expect(said).not.toMatch(/^got-through$/m);
    const again = await play(engineIn({ user: NOBODY }).plan({ ...job, mode: "APPLY" }));
    expect(planned(again.outcome)).toMatchObject({ noChanges: true, state: { serial: 1 } });
  });

  test("as an ordinary user too, where the kernel lets one have namespaces", async () => {
    expect(await probe(["--reuid", "65534", "--regid", "65534", "--clear-groups"])).toEqual(["open", "closed"]);
  });

  test("where it can't be cut off the program doesn't run, and the failure says what is missing", async () => {
    const [line = ""] = await probe(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]);
    expect(JSON.parse(line)).toMatchObject({
      failure: {
        code: "SANDBOX_UNAVAILABLE",
        message: expect.stringMatching(/can't cut off the network.*unshare failed.*run the service as root/),
      },
    });
  });

  /** What the probe says when it has the rights that these flags of setpriv leave. */
  async function probe(rights: string[]): Promise<string[]> {
    const args = [
      ...rights,
      "--",
      process.execPath,
      "--import",
      "tsx",
      PROBE,
      sandbox.bench.address,
      String(listenerPort),
    ];
    const process_ = spawn("setpriv", args, { stdio: ["ignore", "pipe", "inherit"], env: { PATH: SEARCH_PATH } });
    const [said] = await Promise.all([text(process_.stdout), once(process_, "close")]);
    return said.trim().split("\n");
  }
});
