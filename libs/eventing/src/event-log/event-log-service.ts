import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { EventLogService } from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/event_log_service_pb";
import { refuseForeignTopics } from "./announced-topics.ts";
import { listEvents } from "./event-list.ts";
import { watchLog } from "./event-watch.ts";
import type { LogTip } from "./log-tip.ts";
import { loggedEvent } from "./logged-event.ts";
import { pageAfter, pageSize, pageToken, SEQUENCE } from "../page.ts";
import { parkedEvents } from "./parked-events.ts";
import type { JobQueue } from "../queues/queue-backend.ts";
import { reachingQueues } from "./reaching-queues.ts";
import { redriveParked } from "./redrive.ts";
import { type ReplayContext, replayEvents } from "./replay.ts";
import { tenantInView } from "./tenant-in-view.ts";
import { watcherLimit } from "./watcher-limit.ts";

export interface EventLogContext extends ReplayContext {
  tip: LogTip;
  /** The service's name in the catalogue. */
  producer: string;
  /** The service's own. Rejects with Unavailable while the queues are away. */
  inbox(): Promise<JobQueue>;
}

/** The RPCs over a service's outbox and inbox. */
export function eventLogService(context: EventLogContext): ServiceImpl<typeof EventLogService> {
  const { pool, tip, producer, inbox } = context;
  const watchers = watcherLimit();

  return {
    listEvents(request, call) {
      refuseForeignTopics(request.topics, producer);
      return listEvents(pool, request, { tenantId: tenantInView(call, request.allTenants), producer });
    },

    async *watchEvents({ topics, subject, allTenants, afterSequence }, call) {
      refuseForeignTopics(topics, producer);
      const filter = { topics, subject, tenantId: tenantInView(call, allTenants) };
      const leave = watchers.enter(call.signal);
      try {
        const steps = watchLog({ pool, tip, filter, afterSequence, signal: call.signal });
        for await (const { entry, sequence } of steps) {
          yield { sequence, ...(entry && { event: loggedEvent(entry) }) };
        }
      } finally {
        leave();
      }
    },

    replayEvents: (request, call) =>
      replayEvents(context, request, { tenantId: tenantInView(call, request.allTenants), signal: call.signal }),

    async listParkedEvents({ topics, allTenants, ...paging }, call) {
      const filter = { topics, tenantId: tenantInView(call, allTenants) };
      const from = Number(pageAfter(paging.pageToken, filter, SEQUENCE) ?? 0);
      const size = pageSize(paging.pageSize);
      const { events, next } = await reachingQueues(async () => parkedEvents(await inbox(), filter, { from, size }));
      return {
        events: events.map(({ failedAt, ...event }) => ({
          ...event,
          ...(failedAt && { failedAt: timestampFromDate(failedAt) }),
        })),
        nextPageToken: next === undefined ? "" : pageToken(String(next), filter),
      };
    },

    async redriveEvents({ topics, eventIds, allTenants }, call) {
      const filter = { topics, eventIds, tenantId: tenantInView(call, allTenants) };
      return { redriven: await reachingQueues(async () => redriveParked(await inbox(), filter)) };
    },
  };
}
