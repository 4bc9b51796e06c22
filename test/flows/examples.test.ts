import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { deploy, type TestDeployment } from "../_support/deployment.ts";

const START_MS = 60_000;
const FOLLOW_MS = 60_000;
const TOPIC = "capacity.quotas.v1.quota-changed";
const root = fileURLToPath(new URL("../..", import.meta.url));

const withPython = spawnSync("python3", ["--version"]).status === 0 ? test : test.skip;

let deployment: TestDeployment;
let folder: string;
const running: Example[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runtime-cloud-examples-"));
  deployment = await deploy(["execution-capacity"]);
}, START_MS);
afterEach(() => Promise.all(running.splice(0).map((example) => example.stop())));
afterAll(async () => {
  await deployment.close();
  await rm(folder, { recursive: true, force: true });
}, START_MS);

test(
  "the TypeScript consumer prints an event of its subscriber's inbox, decoded",
  async () => {
    const { REDIS_URL = "" } = deployment.services.variables("execution-capacity");
    const consumer = run(process.execPath, ["--import", "tsx", "examples/consumer/consumer.ts"], {
      SUBSCRIBER: "StudioBff",
      REDIS_URL,
      QUEUE_PREFIX: deployment.backend.prefix,
    });
    await limitRuns(11);
    await consumer.prints(`quota ${deployment.stage.tenantId} 11 runs`);
    await consumer.prints(`${TOPIC} ${deployment.stage.tenantId} {`);
    expect(await consumer.stop()).toBe(0);
  },
  FOLLOW_MS,
);

withPython(
  "the Python follower prints what was announced, and after a restart only what came since",
  async () => {
    const { tenantId } = deployment.stage;
    const follow = () =>
      run(
        "python3",
        [
          "examples/consumer-python/follow.py",
          deployment.services.urls["execution-capacity"],
          join(folder, "capacity.cursor"),
        ],
        { TOKEN: deployment.token },
      );
    await limitRuns(12);
    const first = follow();
    await first.prints('"concurrentRuns": 12');
    await limitRuns(13);
    await first.prints('"concurrentRuns": 13');
    await first.stop();

    await limitRuns(14);
    const second = follow();
    await second.prints('"concurrentRuns": 14');
    expect(second.output()).toMatch(new RegExp(`^[0-9a-f-]{36} ${TOPIC} ${tenantId} \\{.*\\}\\n$`));
  },
  FOLLOW_MS,
);

async function limitRuns(concurrentRuns: number): Promise<void> {
  await deployment.stage.capacity.setQuota({ concurrentRuns, concurrentSandboxes: 1 });
}

interface Example {
  output(): string;
  /** Resolves when its output holds the text. */
  prints(text: string): Promise<void>;
  /** As Ctrl-C does; answers the exit code, null when the signal ended it. */
  stop(): Promise<number | null>;
}

function run(command: string, args: string[], env: Record<string, string>): Example {
  const child = spawn(command, args, {
    cwd: root,
    env: { PATH: process.env["PATH"], PYTHONDONTWRITEBYTECODE: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const closed = once(child, "close");
  const example: Example = {
    output: () => output,
    async prints(text) {
      await eventually(`${args.join(" ")} to print ${text}`, () => {
        if (output.includes(text)) return true;
        throw new Error(`it printed ${output}${errors}`);
      });
    },
    async stop() {
      if (child.exitCode === null) child.kill("SIGINT");
      await closed;
      return child.exitCode;
    },
  };
  running.push(example);
  return example;
}
