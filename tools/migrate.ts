import { isServiceName, serviceNames, type ServiceName } from "@runtime-cloud/migrations/services";
import { parseArgs } from "node:util";

import { withServer, type MigrationServer } from "./migrate/server.ts";
import { table } from "./migrate/table.ts";
import { seconds } from "./seconds.ts";

const USAGE = `Usage: npm run migrate -- deploy [--service SERVICE]
       npm run migrate -- status [--service SERVICE]
       npm run migrate -- new NAME [--service SERVICE]

  deploy   applies the migrations that the databases lack
  status   prints what each database has
  new      writes the migration from the migrations so far to prisma/<service>/*.prisma and the state machines,
           as prisma/<service>/migrations/<time>_<NAME>/migration.sql; NAME is lower-case words joined by "_"

SERVICE is ${serviceNames.join(", ")}; without it, all three in turn.

The databases are those of IAC_PROVISIONING_DATABASE_URL, EXECUTION_CAPACITY_DATABASE_URL and
RUNTIME_ENVIRONMENT_DATABASE_URL; with --service also of DATABASE_URL. Where those are not set: a database per service
on the server of DATABASE_ADMIN_URL, or else on the embedded server, created if absent.`;

const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;

type Command = { verb: "deploy" | "status"; services: readonly ServiceName[]; one: boolean } | NewCommand;
type Help = { verb: "help" };
type NewCommand = { verb: "new"; services: readonly ServiceName[]; one: boolean; name: string };

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const command = parse(args);
  if (typeof command === "string") {
    console.error(`${command}\n\n${USAGE}`);
    return 2;
  }
  if (command.verb === "help") {
    console.log(USAGE);
    return 0;
  }
  try {
    return await withServer(command.one, (server) => run(command, server));
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

/** The command, or what is wrong with it. */
function parse(args: string[]): Command | Help | string {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { service: { type: "string" }, help: { type: "boolean", short: "h" } },
    });
    if (values.help === true) return { verb: "help" };
    const [verb, name, ...rest] = positionals;
    if (values.service !== undefined && !isServiceName(values.service)) return `Unknown service: ${values.service}`;
    const target = {
      services: values.service === undefined ? serviceNames : [values.service],
      one: values.service !== undefined,
    };
    if (rest.length > 0 || (verb !== "new" && name !== undefined))
      return `Too many arguments: ${positionals.join(" ")}`;
    if (verb === "deploy" || verb === "status") return { verb, ...target };
    if (verb !== "new") return verb === undefined ? "A command is missing." : `Unknown command: ${verb}`;
    if (name === undefined) return "The new migration's NAME is missing.";
    return NAME.test(name) ? { verb, name, ...target } : `Not a migration's name: ${name}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function run(command: Command, server: MigrationServer): Promise<number> {
  if (command.verb === "new") return draft(command, server);
  for (const service of command.services) {
    const database = { service, databaseUrl: await server.databaseUrl(service) };
    await (command.verb === "deploy" ? deploy(database) : status(database));
  }
  return 0;
}

async function deploy(database: { service: ServiceName; databaseUrl: string }): Promise<void> {
  const { deployMigrations } = await import("@runtime-cloud/migrations/deploy");
  const started = performance.now();
  const applied = await deployMigrations(database);
  console.log(
    `${database.service}: ${applied.length === 0 ? "up to date" : `applied ${applied.join(", ")}`} (${seconds(started)})`,
  );
}

async function status(database: { service: ServiceName; databaseUrl: string }): Promise<void> {
  const { migrateStatus } = await import("@runtime-cloud/migrations/status");
  const migrations = await migrateStatus(database);
  console.log(database.service);
  console.log(
    table(migrations.length === 0 ? [["(no migrations)"]] : migrations.map(({ state, name }) => [state, name])),
  );
}

async function draft({ services, name }: NewCommand, server: MigrationServer): Promise<number> {
  const { draftMigration, writeMigration } = await import("@runtime-cloud/migrations/draft");
  const { lifecycleEdges } = await import("@runtime-cloud/state-machines/lifecycle-edges");
  const written: string[] = [];
  for (const service of services) {
    const sql = await server.withScratchDatabase(service, (databaseUrl) =>
      draftMigration({ service, databaseUrl }, lifecycleEdges(service)),
    );
    if (sql !== "") written.push(await writeMigration(service, name, new Date(), sql));
    console.log(`${service}: ${sql === "" ? "nothing to do" : `wrote ${written.at(-1) ?? ""}`}`);
  }
  if (written.length > 0) return 0;
  console.error("The migrations already lead to these schemas and state machines.");
  return 1;
}
