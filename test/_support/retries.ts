import { jest } from "@jest/globals";

/**
 * How often a failed test is tried again, its first failure logged. 0 unless the environment says otherwise: where a
 * machine is shared, what takes the time of real processes may fail for want of it.
 */
jest.retryTimes(Number(process.env["TEST_RETRIES"] ?? 0), { logErrorsBeforeRetry: true });
