import type { EnvironmentCreated } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { EnvironmentClass as ClassCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { EnvironmentClass } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { declareSpecification } from "./declare.ts";
import { planRun } from "../runs/plan-run.ts";
import { loadProgram } from "../programs/program-directory.ts";
import type { JsonObject } from "../json/canonical-json.ts";

/** EnvironmentCreated: gives the environment its foundation, once. */
export async function provisionBaseline(
  context: Context,
  unit: ServiceUnit,
  created: EnvironmentCreated,
): Promise<void> {
  const { environmentId: id, tenantId, projectId } = created;
  const environmentClass = classOf(created);
  await unit.tx.environment.upsert({
    where: { id, tenantId },
    create: { id, tenantId, projectId, class: environmentClass },
    update: {},
  });
  const founded = await unit.tx.specification.count({ where: { environmentId: id, kind: "BASELINE" } });
  if (founded > 0) return;

  const specification = await declareSpecification(context, unit, {
    tenantId,
    environmentId: id,
    kind: "BASELINE",
    programVersion: context.settings.BASELINE_PROGRAM,
    parameters: await baselineParameters(context, {
      environment: id,
      environment_id: id,
      environment_class: environmentClass,
      project_id: projectId,
      tenant_id: tenantId,
    }),
    reviewDestructive: false,
    releaseId: null,
    declaredBy: unit.cause.actor,
  });
  await planRun(context, unit, { specification, kind: "BASELINE", mode: "APPLY", requestedBy: unit.cause.actor });
}

/** A class that this version doesn't know is treated with the most care. */
function classOf(created: EnvironmentCreated): EnvironmentClass {
  const classes: Readonly<Record<string, EnvironmentClass>> = EnvironmentClass;
  return classes[ClassCode[created.class] ?? ""] ?? "PRODUCTION";
}

/** Of what is known about an environment, what the baseline program asks for. */
async function baselineParameters({ settings }: Context, known: JsonObject): Promise<JsonObject> {
  const program = await loadProgram(settings.PROGRAMS_DIR, settings.BASELINE_PROGRAM);
  if (!program) {
    const description = `${settings.BASELINE_PROGRAM}, the BASELINE_PROGRAM, isn't a program of this installation`;
    throw new InvalidInput([{ field: "programVersion", description }]);
  }
  return Object.fromEntries(Object.entries(known).filter(([name]) => Object.hasOwn(program.parameters, name)));
}
