-- CreateEnum
CREATE TYPE "EnvironmentClass" AS ENUM ('DEVELOPMENT', 'TEST', 'STAGING', 'PRODUCTION');

-- CreateEnum
CREATE TYPE "SpecificationKind" AS ENUM ('BASELINE', 'RELEASE', 'WORKER_POOL');

-- CreateEnum
CREATE TYPE "InventoryState" AS ENUM ('UNOBSERVED', 'FRESH', 'STALE', 'RETIRED');

-- CreateEnum
CREATE TYPE "Health" AS ENUM ('HEALTHY', 'PROGRESSING', 'DEGRADED', 'MISSING', 'UNKNOWN');

-- CreateEnum
CREATE TYPE "DriftKind" AS ENUM ('RESOURCE_MISSING', 'RESOURCE_UNMANAGED', 'ATTRIBUTE_CHANGED', 'VERSION_MISMATCH', 'REPLICA_MISMATCH', 'HEALTH_DEGRADED');

-- CreateEnum
CREATE TYPE "FindingState" AS ENUM ('OPEN', 'PROPOSED', 'SUPPRESSED', 'RESOLVED');

-- CreateEnum
CREATE TYPE "ReconciliationDirection" AS ENUM ('REVERT_TO_SPECIFICATION', 'ADOPT_OBSERVED', 'REFRESH_STATE');

-- CreateEnum
CREATE TYPE "ProposalState" AS ENUM ('PROPOSED', 'ACCEPTING', 'ACCEPTED', 'COMPLETED', 'FAILED', 'REJECTED', 'EXPIRED', 'SUPERSEDED', 'OBSOLETE');

-- CreateTable
CREATE TABLE "outbox_message" (
    "id" UUID NOT NULL,
    "position" BIGSERIAL NOT NULL,
    "topic" VARCHAR(200) NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "subject" VARCHAR(128) NOT NULL,
    "envelope" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "published_at" TIMESTAMPTZ(3),

    CONSTRAINT "outbox_message_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "inbox_receipt" (
    "event_id" UUID NOT NULL,
    "handler" VARCHAR(100) NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "inbox_receipt_pkey" PRIMARY KEY ("event_id","handler")
);

-- CreateTable
CREATE TABLE "lifecycle_edge" (
    "aggregate" VARCHAR(60) NOT NULL,
    "from_state" VARCHAR(40) NOT NULL,
    "event" VARCHAR(60) NOT NULL,
    "to_state" VARCHAR(40) NOT NULL,

    CONSTRAINT "lifecycle_edge_pkey" PRIMARY KEY ("aggregate","from_state","event","to_state")
);

-- CreateTable
CREATE TABLE "transition" (
    "id" BIGSERIAL NOT NULL,
    "aggregate" VARCHAR(60) NOT NULL,
    "aggregate_id" VARCHAR(128) NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "version" INTEGER NOT NULL,
    "from_state" VARCHAR(40) NOT NULL,
    "event" VARCHAR(60) NOT NULL,
    "to_state" VARCHAR(40) NOT NULL,
    "actor" VARCHAR(200) NOT NULL,
    "correlation_id" VARCHAR(128) NOT NULL,
    "causation_id" VARCHAR(128),
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "transition_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "idempotency_key" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "method" VARCHAR(200) NOT NULL,
    "key" VARCHAR(128) NOT NULL,
    "request_hash" VARCHAR(71) NOT NULL,
    "response" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "idempotency_key_pkey" PRIMARY KEY ("tenant_id","method","key")
);

-- CreateTable
CREATE TABLE "queue_mark" (
    "prefix" VARCHAR(200) NOT NULL,
    "mark" UUID NOT NULL,
    "marked_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "queue_mark_pkey" PRIMARY KEY ("prefix")
);

-- CreateTable
CREATE TABLE "inventory" (
    "id" VARCHAR(128) NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "InventoryState" NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "class" "EnvironmentClass" NOT NULL,
    "health" "Health" NOT NULL DEFAULT 'UNKNOWN',
    "current_release_id" UUID,
    "observed_at" TIMESTAMPTZ(3),
    "stale_at" TIMESTAMPTZ(3),
    "observation_failure" VARCHAR(1000),
    "observe_at" TIMESTAMPTZ(3) NOT NULL,
    "observe_seconds" INTEGER NOT NULL,
    "stale_after_seconds" INTEGER NOT NULL,
    "propose_after_seconds" INTEGER,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "inventory_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "tracked_specification" (
    "inventory_id" VARCHAR(128) NOT NULL,
    "kind" "SpecificationKind" NOT NULL,
    "declared_version" INTEGER,
    "declared_specification_id" UUID,
    "applied_version" INTEGER,
    "applied_specification_id" UUID,

    CONSTRAINT "tracked_specification_pkey" PRIMARY KEY ("inventory_id","kind")
);

-- CreateTable
CREATE TABLE "observer_report" (
    "inventory_id" VARCHAR(128) NOT NULL,
    "observer" VARCHAR(40) NOT NULL,
    "observed_at" TIMESTAMPTZ(3),
    "failure" VARCHAR(1000),

    CONSTRAINT "observer_report_pkey" PRIMARY KEY ("inventory_id","observer")
);

-- CreateTable
CREATE TABLE "component" (
    "inventory_id" VARCHAR(128) NOT NULL,
    "observer" VARCHAR(40) NOT NULL,
    "name" VARCHAR(128) NOT NULL,
    "component_version" VARCHAR(128) NOT NULL,
    "replicas_desired" INTEGER NOT NULL,
    "replicas_ready" INTEGER NOT NULL,
    "health" "Health" NOT NULL,

    CONSTRAINT "component_pkey" PRIMARY KEY ("inventory_id","observer","name")
);

-- CreateTable
CREATE TABLE "resource" (
    "inventory_id" VARCHAR(128) NOT NULL,
    "kind" "SpecificationKind" NOT NULL,
    "address" VARCHAR(500) NOT NULL,
    "resource_type" VARCHAR(200) NOT NULL,
    "resource_id" VARCHAR(500),

    CONSTRAINT "resource_pkey" PRIMARY KEY ("inventory_id","kind","address")
);

-- CreateTable
CREATE TABLE "finding" (
    "id" UUID NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "FindingState" NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "environment_id" VARCHAR(128) NOT NULL,
    "specification_kind" "SpecificationKind" NOT NULL,
    "specification_id" UUID NOT NULL,
    "fingerprint" VARCHAR(71) NOT NULL,
    "kind" "DriftKind" NOT NULL,
    "resource" VARCHAR(500) NOT NULL,
    "attribute" VARCHAR(500) NOT NULL,
    "declared" JSONB,
    "observed" JSONB,
    "first_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "occurrences" INTEGER NOT NULL DEFAULT 1,
    "proposal_id" UUID,
    "suppressed_reason" VARCHAR(1000),
    "suppressed_until" TIMESTAMPTZ(3),
    "resolved_at" TIMESTAMPTZ(3),

    CONSTRAINT "finding_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "proposal" (
    "id" UUID NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "ProposalState" NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "environment_id" VARCHAR(128) NOT NULL,
    "specification_id" UUID NOT NULL,
    "direction" "ReconciliationDirection" NOT NULL,
    "destructive" BOOLEAN NOT NULL,
    "digest" VARCHAR(71) NOT NULL,
    "finding_ids" UUID[],
    "provisioning_run_id" UUID,
    "proposed_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "ask_at" TIMESTAMPTZ(3),
    "asks" INTEGER NOT NULL DEFAULT 0,
    "decided_by" VARCHAR(200),
    "decided_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "reason" VARCHAR(1000),

    CONSTRAINT "proposal_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "outbox_message_position_key" ON "outbox_message"("position");

-- CreateIndex
CREATE INDEX "outbox_message_unpublished" ON "outbox_message"("position") WHERE (published_at IS NULL);

-- CreateIndex
CREATE INDEX "outbox_message_published_at_idx" ON "outbox_message"("published_at");

-- CreateIndex
CREATE INDEX "inbox_receipt_received_at_idx" ON "inbox_receipt"("received_at");

-- CreateIndex
CREATE UNIQUE INDEX "transition_tenant_id_aggregate_aggregate_id_version_key" ON "transition"("tenant_id", "aggregate", "aggregate_id", "version");

-- CreateIndex
CREATE INDEX "idempotency_key_created_at_idx" ON "idempotency_key"("created_at");

-- CreateIndex
CREATE INDEX "inventory_tenant_id_project_id_id_idx" ON "inventory"("tenant_id", "project_id", "id");

-- CreateIndex
CREATE INDEX "inventory_state_observe_at_idx" ON "inventory"("state", "observe_at");

-- CreateIndex
CREATE INDEX "inventory_state_stale_at_idx" ON "inventory"("state", "stale_at");

-- CreateIndex
CREATE INDEX "finding_tenant_id_environment_id_first_seen_at_idx" ON "finding"("tenant_id", "environment_id", "first_seen_at");

-- CreateIndex
CREATE INDEX "finding_proposal_id_idx" ON "finding"("proposal_id");

-- CreateIndex
CREATE INDEX "finding_state_suppressed_until_idx" ON "finding"("state", "suppressed_until");

-- CreateIndex
CREATE UNIQUE INDEX "finding_one_per_fingerprint" ON "finding"("environment_id", "fingerprint") WHERE (state <> 'RESOLVED');

-- CreateIndex
CREATE INDEX "proposal_tenant_id_environment_id_proposed_at_idx" ON "proposal"("tenant_id", "environment_id", "proposed_at");

-- CreateIndex
CREATE INDEX "proposal_tenant_id_provisioning_run_id_idx" ON "proposal"("tenant_id", "provisioning_run_id");

-- CreateIndex
CREATE INDEX "proposal_state_expires_at_idx" ON "proposal"("state", "expires_at");

-- CreateIndex
CREATE INDEX "proposal_state_ask_at_idx" ON "proposal"("state", "ask_at");

-- CreateIndex
CREATE UNIQUE INDEX "proposal_one_undecided" ON "proposal"("environment_id") WHERE (state = 'PROPOSED');

-- AddForeignKey
ALTER TABLE "transition" ADD CONSTRAINT "transition_aggregate_from_state_event_to_state_fkey" FOREIGN KEY ("aggregate", "from_state", "event", "to_state") REFERENCES "lifecycle_edge"("aggregate", "from_state", "event", "to_state") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tracked_specification" ADD CONSTRAINT "tracked_specification_inventory_id_fkey" FOREIGN KEY ("inventory_id") REFERENCES "inventory"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "observer_report" ADD CONSTRAINT "observer_report_inventory_id_fkey" FOREIGN KEY ("inventory_id") REFERENCES "inventory"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "component" ADD CONSTRAINT "component_inventory_id_fkey" FOREIGN KEY ("inventory_id") REFERENCES "inventory"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "resource" ADD CONSTRAINT "resource_inventory_id_fkey" FOREIGN KEY ("inventory_id") REFERENCES "inventory"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "finding" ADD CONSTRAINT "finding_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "inventory"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "proposal" ADD CONSTRAINT "proposal_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "inventory"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- LifecycleEdges
INSERT INTO "lifecycle_edge" ("aggregate", "from_state", "event", "to_state") VALUES
    ('DriftFinding', 'OPEN', 'propose', 'PROPOSED'),
    ('DriftFinding', 'OPEN', 'resolve', 'RESOLVED'),
    ('DriftFinding', 'OPEN', 'suppress', 'SUPPRESSED'),
    ('DriftFinding', 'PROPOSED', 'propose', 'PROPOSED'),
    ('DriftFinding', 'PROPOSED', 'reopen', 'OPEN'),
    ('DriftFinding', 'PROPOSED', 'resolve', 'RESOLVED'),
    ('DriftFinding', 'SUPPRESSED', 'expire', 'OPEN'),
    ('DriftFinding', 'SUPPRESSED', 'resolve', 'RESOLVED'),
    ('DriftFinding', 'SUPPRESSED', 'unsuppress', 'OPEN'),
    ('DriftFinding', '[*]', 'create', 'OPEN'),
    ('ReconciliationProposal', 'ACCEPTED', 'complete', 'COMPLETED'),
    ('ReconciliationProposal', 'ACCEPTED', 'fail', 'FAILED'),
    ('ReconciliationProposal', 'ACCEPTING', 'fail', 'FAILED'),
    ('ReconciliationProposal', 'ACCEPTING', 'planRun', 'ACCEPTED'),
    ('ReconciliationProposal', 'PROPOSED', 'accept', 'ACCEPTING'),
    ('ReconciliationProposal', 'PROPOSED', 'expire', 'EXPIRED'),
    ('ReconciliationProposal', 'PROPOSED', 'lapse', 'OBSOLETE'),
    ('ReconciliationProposal', 'PROPOSED', 'reject', 'REJECTED'),
    ('ReconciliationProposal', 'PROPOSED', 'supersede', 'SUPERSEDED'),
    ('ReconciliationProposal', '[*]', 'create', 'PROPOSED'),
    ('RuntimeInventory', 'FRESH', 'expire', 'STALE'),
    ('RuntimeInventory', 'FRESH', 'observe', 'FRESH'),
    ('RuntimeInventory', 'FRESH', 'retire', 'RETIRED'),
    ('RuntimeInventory', 'STALE', 'observe', 'FRESH'),
    ('RuntimeInventory', 'STALE', 'retire', 'RETIRED'),
    ('RuntimeInventory', 'UNOBSERVED', 'observe', 'FRESH'),
    ('RuntimeInventory', 'UNOBSERVED', 'retire', 'RETIRED'),
    ('RuntimeInventory', '[*]', 'create', 'UNOBSERVED');
