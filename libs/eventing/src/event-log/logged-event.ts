import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type LoggedEvent, LoggedEventSchema } from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/events_pb";
import type { LogEntry } from "./event-log.ts";

export function loggedEvent({ sequence, recordedAt, publishedAt, envelope }: LogEntry): LoggedEvent {
  return create(LoggedEventSchema, {
    sequence,
    recordedAt: timestampFromDate(recordedAt),
    ...(publishedAt && { publishedAt: timestampFromDate(publishedAt) }),
    envelope,
  });
}
