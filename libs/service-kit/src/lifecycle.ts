import { ConfigError } from "./config.ts";
import type { Logger } from "./logger.ts";

/** Something that runs until it is stopped. `stop` ends in good order and may be slow. */
export interface Running {
  stop(): Promise<void>;
}

export interface LifecycleOptions {
  /** How long `stop` may take before the process ends without it, in milliseconds. */
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
 * they are. A second signal ends the process at once.
 */
export async function runUntilSignal(
  name: string,
  start: () => Promise<Running>,
  logger: Logger,
  { stopWithinMs = STOP_WITHIN_MS }: LifecycleOptions = {},
): Promise<never> {
  const stopped = nextSignal();
  try {
    const running = await start();
    logger.info({ name }, "ready");
    const signal = await stopped;
    for (const again of signals) process.once(again, () => process.exit(1));
    logger.info({ name, signal }, "stopping");
    const stoppedInTime = await within(stopWithinMs, running.stop());
    if (!stoppedInTime) logger.error({ name, stopWithinMs }, "did not stop in time");
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

/** Listens from the beginning, so that a signal during a slow start isn't lost. */
function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of signals) process.once(signal, resolve);
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
