/** What a hand-written INSERT of an aggregate's row needs: first the rows that it refers to, then its own columns. */
export interface SampleRow {
  table: string;
  /** SQL for the rows that it refers to. */
  before: string[];
  columns: Record<string, string | number | boolean | Buffer>;
}

const id = "0190a0a0-0000-7000-8000-000000000001";
const digest = `sha256:${"0".repeat(64)}`;
const now = "2026-01-01T12:00:00Z";
const owner = { tenant_id: "tenant", project_id: "project" };

const environment = `INSERT INTO environment (id, tenant_id, project_id, class) VALUES ('env', 'tenant', 'project', 'TEST')
  ON CONFLICT DO NOTHING`;
const specification = {
  id,
  ...owner,
  environment_id: "env",
  kind: "BASELINE",
  specification_version: 1,
  program_version: "base@1.0.0",
  program_digest: digest,
  parameters: "{}",
  sealed_parameters: Buffer.from(""),
  content_digest: digest,
  review_destructive: false,
  declared_by: "test",
  declared_at: now,
};
const inventory = {
  id: "env",
  ...owner,
  class: "TEST",
  observe_at: now,
  observe_seconds: 60,
  stale_after_seconds: 300,
};

/** By the aggregate's name. */
export const sampleRows: Record<string, SampleRow> = {
  DeploymentSpecification: { table: "specification", before: [environment], columns: specification },
  ProvisioningRun: {
    table: "provisioning_run",
    before: [environment, `${insertSql("specification", "DECLARED", specification)} ON CONFLICT DO NOTHING`],
    columns: {
      id,
      ...owner,
      environment_id: "env",
      kind: "BASELINE",
      mode: "APPLY",
      specification_id: id,
      specification_version: 1,
      requested_by: "test",
      separate_approver: false,
      queued_at: now,
    },
  },
  WorkerPool: {
    table: "worker_pool",
    before: [],
    columns: { tenant_id: "tenant", id: "pool", kind: "GENERAL", scaling: "STATIC", current_size: 0, desired_size: 0 },
  },
  Quota: {
    table: "quota",
    before: [],
    columns: { id, tenant_id: "tenant", concurrent_runs: 1, concurrent_sandboxes: 1 },
  },
  CapacityLease: {
    table: "capacity_lease",
    before: [
      `INSERT INTO worker_pool (tenant_id, id, state, kind, scaling, current_size, desired_size)
       VALUES ('tenant', 'other', 'PROVISIONING', 'GENERAL', 'STATIC', 0, 0) ON CONFLICT DO NOTHING`,
    ],
    columns: {
      id,
      ...owner,
      holder_kind: "Attempt",
      holder_id: "holder",
      resource: "RUNS",
      pool_tenant_id: "tenant",
      pool_id: "other",
      units: 1,
      ttl_seconds: 60,
      requested_at: now,
    },
  },
  RuntimeInventory: { table: "inventory", before: [], columns: inventory },
  DriftFinding: {
    table: "finding",
    before: [`${insertSql("inventory", "UNOBSERVED", { ...inventory, id: "other" })} ON CONFLICT DO NOTHING`],
    columns: {
      id,
      ...owner,
      environment_id: "other",
      specification_kind: "RELEASE",
      specification_id: id,
      fingerprint: digest,
      kind: "RESOURCE_MISSING",
      resource: "service.yaml",
      attribute: "",
      declared: "null",
      observed: "null",
      first_seen_at: now,
      last_seen_at: now,
    },
  },
  ReconciliationProposal: {
    table: "proposal",
    before: [`${insertSql("inventory", "UNOBSERVED", { ...inventory, id: "other" })} ON CONFLICT DO NOTHING`],
    columns: {
      id,
      ...owner,
      environment_id: "other",
      specification_id: id,
      direction: "REFRESH_STATE",
      destructive: false,
      digest,
      proposed_at: now,
      expires_at: now,
    },
  },
};

/** An INSERT of a row in a state, with its values in it. */
export function insertSql(table: string, state: string, columns: SampleRow["columns"]): string {
  const given = { state, ...columns };
  return `INSERT INTO ${table} (${Object.keys(given).join(", ")}) VALUES (${Object.values(given).map(literal).join(", ")})`;
}

function literal(value: string | number | boolean | Buffer): string {
  return typeof value === "string"
    ? `'${value}'`
    : Buffer.isBuffer(value)
      ? `'\\x${value.toString("hex")}'`
      : String(value);
}
