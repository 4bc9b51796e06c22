import type { Logger } from "pino";
import type { Pool } from "pg";
import type { Clock } from "@runtime-cloud/service-kit/clock";
import type { NewId } from "@runtime-cloud/service-kit/ids";

/** What a service's handlers, inbox and deadlines work with; built once in `startService`. */
export interface ServiceContext<Client, Settings> {
  /** The service's own database through Prisma. */
  client: Client;
  /** The same database for set-based SQL. */
  pool: Pool;
  settings: Settings;
  clock: Clock;
  newId: NewId;
  logger: Logger;
  /** Told after a commit that announces events. */
  announced(): void;
  /** A hint that something is due at an instant; losing it costs lateness, never the deadline. */
  arm(kind: string, at: Date, label?: Record<string, string>): Promise<void>;
  /** A hint that there is work; losing it costs lateness, never the work. */
  enqueue(queue: string, id: string, data: Record<string, string>): Promise<void>;
}
