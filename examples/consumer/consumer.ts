import { MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { readEvent } from "@runtime-cloud/contracts/events/read-event";
import { UnrecoverableError, Worker } from "bullmq";

const {
  SUBSCRIBER = "StudioBff",
  REDIS_URL = "redis://127.0.0.1:6379",
  QUEUE_PREFIX = "{runtime-cloud}",
} = process.env;

// An event may come twice. A real subscriber keeps the ids in its database, in the transaction of what it does.
const seen = new Set<string>();

const worker = new Worker(
  inboxOf(SUBSCRIBER),
  // What throws is tried again: eight times in about a minute, then the job waits among the failed ones.
  async ({ data }) => {
    const event = read(data);
    const { id, type, tenantid } = event.envelope;
    if (seen.has(id)) return;
    if (event.name === "QuotaChanged") console.log("quota", tenantid, event.message.concurrentRuns, "runs");
    // A topic that this version of the contract lacks has no name: ignore it, or read its JSON as it is.
    console.log(id, type, tenantid, event.name === undefined ? event.envelope.data : event.message);
    seen.add(id);
  },
  {
    connection: { url: REDIS_URL, maxRetriesPerRequest: null },
    prefix: QUEUE_PREFIX,
    removeOnComplete: { count: 1_000 },
  },
);
worker.on("failed", (job, error) => console.error(`${job?.id}: ${error.message}`));
worker.on("error", (error) => console.error(`Redis: ${error.message}`)); // it reconnects by itself
process.once("SIGTERM", () => void worker.close()).once("SIGINT", () => void worker.close());

/** What can't be read now can't be read later: such an event isn't tried again. */
function read(data: unknown) {
  try {
    return readEvent(data);
  } catch (error) {
    throw error instanceof MalformedEvent ? new UnrecoverableError(error.message) : error;
  }
}
