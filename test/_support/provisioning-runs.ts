import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import type { ProvisioningRun } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import {
  ProvisioningKind,
  ResourceOutcome,
  RunMode,
  RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { engineChildren } from "./provisioning-children.ts";
import type { ProvisioningDeployment } from "./provisioning-deployment.ts";

/** What a run is asked for. */
export interface RunWish {
  environmentId: string;
  program: string;
  parameters: JsonObject;
  /** RELEASE unless it says BASELINE. */
  kind?: "BASELINE" | "RELEASE";
}

/** Runs of a deployment, in the words that tests tell them in. */
export interface ProvisioningRuns {
  /** The program of three steps, whose second one waits for a gate. */
  steps(environmentId: string, gate: string, more?: Partial<RunWish> & { revision?: number }): RunWish;
  /** Declares a specification and plans its run; returns the run's id. */
  plan(wish: RunWish): Promise<string>;
  /** Another run of the specification that a run is of. */
  planAgain(runId: string): Promise<string>;
  /** Approves the plan as it is. */
  approve(runId: string): Promise<void>;
  /** Resolves with the run once it is in a state; rejects as soon as it can't come there any more. */
  reaches(runId: string, state: keyof typeof RunState): Promise<ProvisioningRun>;
  state(runId: string): Promise<string>;
  /** Resolves when the engine works on a resource. */
  worksOn(runId: string, address: string): Promise<void>;
  /** Outcomes by address. */
  receipt(runId: string): Promise<Record<string, string>>;
  /** The events of its life, in order. */
  history(runId: string): Promise<string[]>;
  /** What was announced of it last, with its reason if it has one. */
  announced(runId: string): Promise<{ event: string; reason: string | null } | undefined>;
  /** Makes the file that a program waits for. */
  open(gate: string): Promise<void>;
  /** Resolves when no engine, and nothing that one has started, lives any more. */
  nothingLives(): Promise<void>;
  /** How many states of an environment are locked. */
  locks(environmentId: string): Promise<number>;
}

const WITHIN_MS = 120_000;
/** Where a run stays unless an operator does something. */
const OVER = new Set<string>([
  ...["PLANNED", "APPLIED", "PARTIALLY_APPLIED", "FAILED", "REJECTED", "EXPIRED", "SUPERSEDED", "CANCELLED"],
  ...["INDETERMINATE", "RESOLVED"],
]);

export function runsOf({ operator, approver, database, folders, token }: ProvisioningDeployment): ProvisioningRuns {
  const find = async (provisioningRunId: string) => {
    const { run } = await operator.getProvisioningRun({ provisioningRunId });
    if (!run) throw new Error(`no run ${provisioningRunId}`);
    return run;
  };
  const planOf = async (specificationId: string, kind: ProvisioningKind) => {
    const { run } = await operator.planProvisioning({ specificationId, kind, mode: RunMode.APPLY });
    return run?.provisioningRunId ?? "";
  };
  const receipt = async (provisioningRunId: string) => {
    const { entries } = await operator.getReceipt({ provisioningRunId });
    return Object.fromEntries(entries.map(({ address, outcome }) => [address, ResourceOutcome[outcome]]));
  };
  const state = async (runId: string): Promise<string> => RunState[(await find(runId)).state];

  return {
    receipt,
    state,
    steps(environmentId, gate, { revision = 1, ...more } = {}) {
      const parameters = { signals: folders.signals, gate, token, revision };
      return { environmentId, program: "stepwise", parameters, ...more };
    },
    async plan({ environmentId, program, parameters, kind = "RELEASE" }) {
      const { specification } = await operator.declareSpecification({
        environmentId,
        kind: SpecificationKind[kind],
        programVersion: `${program}@1.0.0`,
        parameters,
      });
      const asked = kind === "BASELINE" ? ProvisioningKind.BASELINE : ProvisioningKind.PROMOTION;
      return planOf(specification?.specificationId ?? "", asked);
    },
    async planAgain(runId) {
      const { specificationId, kind } = await find(runId);
      return planOf(specificationId, kind);
    },
    async approve(provisioningRunId) {
      const { planDigest = "" } = await find(provisioningRunId);
      await approver.approveProvisioning({ provisioningRunId, planDigest });
    },
    reaches(runId, wanted) {
      return until(`run ${runId} to be ${wanted}`, WITHIN_MS, async () => {
        const run = await find(runId);
        const now: string = RunState[run.state];
        if (now === wanted) return run;
        if (OVER.has(now)) throw new Error(`the run is ${now} and not ${wanted}: ${run.reason}`);
        return undefined;
      });
    },
    async worksOn(runId, address) {
      await until(`the start of ${address}`, WITHIN_MS, async () => {
        if ((await state(runId)) !== "APPLYING") return undefined;
        return (await receipt(runId))[address] === "INDETERMINATE" || undefined;
      });
    },
    async history(runId) {
      const { rows } = await database.query<{ event: string }>(
        "SELECT event FROM transition WHERE aggregate_id = $1 ORDER BY version",
        [runId],
      );
      return rows.map(({ event }) => event);
    },
    async announced(runId) {
      const { rows } = await database.query<{ event: string; reason: string | null }>(ANNOUNCED, [runId]);
      return rows[0];
    },
    open: (gate) => writeFile(join(folders.signals, gate), ""),
    async nothingLives() {
      const alive = () => engineChildren(folders.work).map(({ pid, command }) => `${pid}: ${command.join(" ")}`);
      await until("the end of all engines", WITHIN_MS, () => alive().length === 0 || undefined).catch(() => {
        throw new Error(`still alive:\n${alive().join("\n")}`);
      });
    },
    async locks(environmentId) {
      const { rows } = await database.query<{ count: number }>(LOCKS, [environmentId]);
      return rows[0]?.count ?? 0;
    },
  };
}

const ANNOUNCED = `
  SELECT split_part(envelope->>'dataschema', '.', 4) AS event, envelope->'data'->>'reason' AS reason
  FROM outbox_message WHERE subject = $1 ORDER BY position DESC LIMIT 1`;

const LOCKS = "SELECT count(*)::int AS count FROM engine_state WHERE environment_id = $1 AND lock_id IS NOT NULL";
