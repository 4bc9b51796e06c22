import { readConfig } from "@runtime-cloud/service-kit/config";
import { runUntilSignal } from "@runtime-cloud/service-kit/lifecycle";
import type { LocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { sharedSettings, type SharedSettings } from "@runtime-cloud/service-kit/settings";
import type { DatabaseClient, ServiceDefinition } from "./service-definition.ts";
import type { SqlTransaction } from "./sql-transaction.ts";
import { startService } from "./start-service.ts";

/** The whole life of a process that is one service: the environment's variables in, an exit code out. */
export async function runService<
  Client extends DatabaseClient<Tx>,
  Tx extends SqlTransaction,
  Settings extends SharedSettings,
>(definition: ServiceDefinition<Client, Tx, Settings>): Promise<never> {
  const { LOG_LEVEL, LOG_FORMAT } = process.env;
  const logger = createLogger({ service: definition.name, level: levelOr(LOG_LEVEL), pretty: LOG_FORMAT === "pretty" });
  endWithParent();
  return runUntilSignal(
    definition.name,
    async () => {
      const running = await startService(definition, readConfig(definition.settings, process.env), logger);
      if (running.localIssuer && logger.isLevelEnabled("info")) await showToken(running.localIssuer);
      return running;
    },
    logger,
  );
}

/** A process that was started with a channel to its parent is nobody's once that closes. */
function endWithParent(): void {
  const end = () => process.kill(process.pid, "SIGTERM");
  // Undefined without a channel. One that closed while this process was loading is told of by nothing else.
  if (Object.is(process.connected, false)) end();
  process.once("disconnect", end);
  process.channel?.unref();
}

async function showToken(issuer: LocalIssuer): Promise<void> {
  const token = await issuer.issue({ subject: "local-operator", tenant: "local", scopes: allScopes });
  process.stderr.write(`No AUTH_* is set: this run takes only its own tokens. One for tenant "local":\n${token}\n`);
}

/** A wrong level is reported with the other settings; until then, the default. */
function levelOr(level: string | undefined): string {
  const parsed = sharedSettings.shape.LOG_LEVEL.safeParse(level);
  return parsed.success ? parsed.data : "info";
}
