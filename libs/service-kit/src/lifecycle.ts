import { ConfigError } from "./config.ts";
import type { Logger } from "./logger.ts";

/** Something that runs until it is stopped. `stop` ends in good order and may be slow. */
export interface Running {
  stop(): Promise<void>;
  /** How long `stop` may take where that is more than usual, in milliseconds. */
  stopWithinMs?: number;
}

export interface LifecycleOptions {
  /** How long stopping may take before the process ends without it, in milliseconds; what is left of a start counts. */
  stopWithinMs?: number;
}

/** Above the longest grace that is usual for calls under way, below the 30 s after which orchestrators kill. */
const STOP_WITHIN_MS = 28_000;
/** sysexits.h: something in the configuration is wrong. */
const EX_CONFIG = 78;
const signals = ["SIGTERM", "SIGINT"] as const;

/**
 * A process's whole life: starts, waits for SIGTERM or SIGINT, stops once, ends. Exit codes: 0 after a good stop; 1 when
 * start or stop failed or took too long; 78 for settings that can't be used, whose problems go to standard error as
 * they are. A signal during the start stops what was started, once it is; a second signal ends the process at once.
 */
export async function runUntilSignal(
  name: string,
  start: () => Promise<Running>,
  logger: Logger,
  { stopWithinMs = STOP_WITHIN_MS }: LifecycleOptions = {},
): Promise<never> {
  const signalled = nextSignal();
  try {
    const starting = start();
    const started = await Promise.race([starting, signalled.then(() => undefined)]);
    if (started) logger.info({ name }, "ready");
    const signal = await signalled;
    logger.info({ name, signal }, "stopping");
    const allowedMs = Math.max(stopWithinMs, started?.stopWithinMs ?? 0);
    const stoppedInTime = await within(
      allowedMs,
      starting.then((running) => running.stop()),
    );
    if (!stoppedInTime) logger.error({ name, stopWithinMs: allowedMs }, "did not stop in time");
    else logger.info({ name }, "stopped");
    return await exit(stoppedInTime ? 0 : 1, logger);
  } catch (error) {
    if (error instanceof ConfigError) {
      process.stderr.write(`${error.message}\n`);
      return exit(EX_CONFIG, logger);
    }
    logger.fatal({ err: error, name }, "failed");
    return exit(1, logger);
  }
}

/** Listens from the beginning, so that a signal during a slow start isn't lost. The one after it ends the process. */
function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first = true;
    const onSignal = (signal: NodeJS.Signals) => {
      if (!first) process.exit(1);
      first = false;
      resolve(signal);
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}

async function within(milliseconds: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Lets the log's last lines out first. */
async function exit(code: number, logger: Logger): Promise<never> {
  await new Promise<void>((resolve) => logger.flush(() => resolve()));
  return process.exit(code);
}
