import { readConfig } from "@runtime-cloud/service-kit/config";
import { runUntilSignal } from "@runtime-cloud/service-kit/lifecycle";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { wholeNumber } from "@runtime-cloud/service-kit/settings";
import { z } from "zod";
import { startProbe } from "./probe-server.ts";

/** The probe service as a process: prints its address and a token, then starts and stops as slowly as it is told. */
const settings = z.object({
  START_MS: wholeNumber("how long starting goes on once the address is printed, in milliseconds", {
    min: 0,
    max: 60_000,
  }).default(0),
  STOP_MS: wholeNumber("how long stopping takes, in milliseconds", { min: 0, max: 60_000 }),
});
const STOP_WITHIN_MS = 2_000;

const logger = createLogger({ service: "probe", level: "info", destination: process.stderr });
await runUntilSignal(
  "probe",
  async () => {
    const { START_MS, STOP_MS } = readConfig(settings, process.env);
    const probe = await startProbe({ graceMs: 500 });
    process.stdout.write(`${JSON.stringify({ url: probe.server.url, token: probe.token })}\n`);
    await new Promise((resolve) => setTimeout(resolve, START_MS));
    return {
      async stop() {
        await probe.server.drain();
        await new Promise((resolve) => setTimeout(resolve, STOP_MS));
      },
    };
  },
  logger,
  { stopWithinMs: STOP_WITHIN_MS },
);
