-- CreateEnum
CREATE TYPE "EnvironmentClass" AS ENUM ('DEVELOPMENT', 'TEST', 'STAGING', 'PRODUCTION');

-- CreateEnum
CREATE TYPE "SpecificationKind" AS ENUM ('BASELINE', 'RELEASE', 'WORKER_POOL');

-- CreateEnum
CREATE TYPE "SpecificationState" AS ENUM ('DECLARED', 'APPLIED', 'SUPERSEDED', 'WITHDRAWN');

-- CreateEnum
CREATE TYPE "ProvisioningKind" AS ENUM ('BASELINE', 'PROMOTION', 'RECONCILIATION', 'POOL_RESIZE', 'TEARDOWN');

-- CreateEnum
CREATE TYPE "RunMode" AS ENUM ('APPLY', 'PLAN_ONLY', 'DESTROY', 'REFRESH_ONLY');

-- CreateEnum
CREATE TYPE "RunState" AS ENUM ('QUEUED', 'PLANNING', 'PLANNED', 'AWAITING_APPROVAL', 'APPROVED', 'APPLYING', 'CANCELLING', 'APPLIED', 'PARTIALLY_APPLIED', 'FAILED', 'REJECTED', 'EXPIRED', 'SUPERSEDED', 'CANCELLED', 'INDETERMINATE', 'RESOLVED');

-- CreateEnum
CREATE TYPE "ResourceOutcome" AS ENUM ('NOT_ATTEMPTED', 'APPLIED', 'NO_OP', 'FAILED', 'INDETERMINATE', 'DELETED_NOT_RECREATED');

-- CreateTable
CREATE TABLE "engine_state" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "environment_id" VARCHAR(128) NOT NULL,
    "kind" VARCHAR(64) NOT NULL,
    "lineage" VARCHAR(128),
    "serial" INTEGER,
    "removed_at" TIMESTAMPTZ(3),
    "lock_id" VARCHAR(128),
    "lock_run_id" VARCHAR(128),
    "lock_epoch" INTEGER,
    "lock_info" TEXT,
    "locked_at" TIMESTAMPTZ(3),
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "engine_state_pkey" PRIMARY KEY ("tenant_id","environment_id","kind")
);

-- CreateTable
CREATE TABLE "engine_state_version" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "environment_id" VARCHAR(128) NOT NULL,
    "kind" VARCHAR(64) NOT NULL,
    "lineage" VARCHAR(128) NOT NULL,
    "serial" INTEGER NOT NULL,
    "digest" VARCHAR(71) NOT NULL,
    "sealed" BYTEA NOT NULL,
    "run_id" VARCHAR(128) NOT NULL,
    "epoch" INTEGER NOT NULL,
    "written_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "engine_state_version_pkey" PRIMARY KEY ("tenant_id","environment_id","kind","lineage","serial")
);

-- CreateTable
CREATE TABLE "engine_state_credential" (
    "holder_id" VARCHAR(128) NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "environment_id" VARCHAR(128) NOT NULL,
    "kind" VARCHAR(64) NOT NULL,
    "epoch" INTEGER NOT NULL,
    "access" VARCHAR(8) NOT NULL,
    "password_hash" VARCHAR(64) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "engine_state_credential_pkey" PRIMARY KEY ("holder_id")
);

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
CREATE TABLE "environment" (
    "id" VARCHAR(128) NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "class" "EnvironmentClass" NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "environment_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "specification" (
    "id" UUID NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "SpecificationState" NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "environment_id" VARCHAR(128) NOT NULL,
    "kind" "SpecificationKind" NOT NULL,
    "specification_version" INTEGER NOT NULL,
    "program_version" VARCHAR(128) NOT NULL,
    "program_digest" VARCHAR(71) NOT NULL,
    "parameters" JSONB NOT NULL,
    "sealed_parameters" BYTEA NOT NULL,
    "content_digest" VARCHAR(71) NOT NULL,
    "review_destructive" BOOLEAN NOT NULL,
    "release_id" UUID,
    "declared_by" VARCHAR(200) NOT NULL,
    "declared_at" TIMESTAMPTZ(3) NOT NULL,
    "applied_at" TIMESTAMPTZ(3),

    CONSTRAINT "specification_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "provisioning_run" (
    "id" UUID NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "RunState" NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "environment_id" VARCHAR(128) NOT NULL,
    "kind" "ProvisioningKind" NOT NULL,
    "mode" "RunMode" NOT NULL,
    "specification_id" UUID NOT NULL,
    "specification_version" INTEGER NOT NULL,
    "promotion_id" UUID,
    "approval_id" UUID,
    "proposal_id" UUID,
    "requested_by" VARCHAR(200) NOT NULL,
    "separate_approver" BOOLEAN NOT NULL,
    "engine" VARCHAR(60),
    "plan_digest" VARCHAR(71),
    "adds" INTEGER NOT NULL DEFAULT 0,
    "changes" INTEGER NOT NULL DEFAULT 0,
    "deletes" INTEGER NOT NULL DEFAULT 0,
    "replaces" INTEGER NOT NULL DEFAULT 0,
    "destructive" BOOLEAN NOT NULL DEFAULT false,
    "state_lineage" VARCHAR(128),
    "state_serial" BIGINT,
    "sealed_plan" BYTEA,
    "outputs" JSONB,
    "sealed_outputs" BYTEA,
    "reason" TEXT,
    "decided_by" VARCHAR(200),
    "executor_id" VARCHAR(128),
    "executor_epoch" INTEGER NOT NULL DEFAULT 0,
    "executor_until" TIMESTAMPTZ(3),
    "force_requested" BOOLEAN NOT NULL DEFAULT false,
    "queued_at" TIMESTAMPTZ(3) NOT NULL,
    "planned_at" TIMESTAMPTZ(3),
    "applying_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "provisioning_run_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "planned_change" (
    "run_id" UUID NOT NULL,
    "ordinal" INTEGER NOT NULL,
    "address" TEXT NOT NULL,
    "resource_type" VARCHAR(200) NOT NULL,
    "actions" TEXT[],
    "reason" VARCHAR(200),
    "before" JSONB,
    "after" JSONB,

    CONSTRAINT "planned_change_pkey" PRIMARY KEY ("run_id","ordinal")
);

-- CreateTable
CREATE TABLE "receipt_entry" (
    "run_id" UUID NOT NULL,
    "ordinal" INTEGER NOT NULL,
    "address" TEXT NOT NULL,
    "outcome" "ResourceOutcome" NOT NULL,
    "actions" TEXT[],
    "resource_id" TEXT,
    "diagnostic" TEXT,
    "duration_ms" INTEGER,

    CONSTRAINT "receipt_entry_pkey" PRIMARY KEY ("run_id","ordinal")
);

-- CreateTable
CREATE TABLE "run_log_line" (
    "run_id" UUID NOT NULL,
    "number" INTEGER NOT NULL,
    "text" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "run_log_line_pkey" PRIMARY KEY ("run_id","number")
);

-- CreateIndex
CREATE INDEX "engine_state_credential_expires_at_idx" ON "engine_state_credential"("expires_at");

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
CREATE INDEX "environment_tenant_id_id_idx" ON "environment"("tenant_id", "id");

-- CreateIndex
CREATE INDEX "specification_tenant_id_id_idx" ON "specification"("tenant_id", "id" DESC);

-- CreateIndex
CREATE INDEX "specification_tenant_id_environment_id_kind_specification_v_idx" ON "specification"("tenant_id", "environment_id", "kind", "specification_version" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "specification_environment_id_kind_specification_version_key" ON "specification"("environment_id", "kind", "specification_version");

-- CreateIndex
CREATE INDEX "provisioning_run_tenant_id_id_idx" ON "provisioning_run"("tenant_id", "id" DESC);

-- CreateIndex
CREATE INDEX "provisioning_run_tenant_id_environment_id_queued_at_idx" ON "provisioning_run"("tenant_id", "environment_id", "queued_at");

-- CreateIndex
CREATE INDEX "provisioning_run_tenant_id_approval_id_idx" ON "provisioning_run"("tenant_id", "approval_id");

-- CreateIndex
CREATE INDEX "provisioning_run_state_expires_at_idx" ON "provisioning_run"("state", "expires_at");

-- CreateIndex
CREATE INDEX "provisioning_run_state_executor_until_idx" ON "provisioning_run"("state", "executor_until");

-- CreateIndex
CREATE UNIQUE INDEX "provisioning_run_one_per_environment" ON "provisioning_run"("environment_id") WHERE (mode <> 'PLAN_ONLY' AND (state = ANY (ARRAY['PLANNING'::"RunState", 'AWAITING_APPROVAL'::"RunState", 'APPROVED'::"RunState", 'APPLYING'::"RunState", 'CANCELLING'::"RunState", 'INDETERMINATE'::"RunState"])));

-- CreateIndex
CREATE UNIQUE INDEX "provisioning_run_tenant_id_proposal_id_key" ON "provisioning_run"("tenant_id", "proposal_id");

-- AddForeignKey
ALTER TABLE "transition" ADD CONSTRAINT "transition_aggregate_from_state_event_to_state_fkey" FOREIGN KEY ("aggregate", "from_state", "event", "to_state") REFERENCES "lifecycle_edge"("aggregate", "from_state", "event", "to_state") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "specification" ADD CONSTRAINT "specification_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environment"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provisioning_run" ADD CONSTRAINT "provisioning_run_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environment"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "provisioning_run" ADD CONSTRAINT "provisioning_run_specification_id_fkey" FOREIGN KEY ("specification_id") REFERENCES "specification"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "planned_change" ADD CONSTRAINT "planned_change_run_id_fkey" FOREIGN KEY ("run_id") REFERENCES "provisioning_run"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "receipt_entry" ADD CONSTRAINT "receipt_entry_run_id_fkey" FOREIGN KEY ("run_id") REFERENCES "provisioning_run"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- LifecycleEdges
INSERT INTO "lifecycle_edge" ("aggregate", "from_state", "event", "to_state") VALUES
    ('DeploymentSpecification', 'APPLIED', 'apply', 'APPLIED'),
    ('DeploymentSpecification', 'APPLIED', 'remove', 'WITHDRAWN'),
    ('DeploymentSpecification', 'APPLIED', 'supersede', 'SUPERSEDED'),
    ('DeploymentSpecification', 'DECLARED', 'apply', 'APPLIED'),
    ('DeploymentSpecification', 'DECLARED', 'supersede', 'SUPERSEDED'),
    ('DeploymentSpecification', 'DECLARED', 'withdraw', 'WITHDRAWN'),
    ('DeploymentSpecification', '[*]', 'create', 'DECLARED'),
    ('ProvisioningRun', 'APPLYING', 'cancel', 'CANCELLING'),
    ('ProvisioningRun', 'APPLYING', 'complete', 'APPLIED'),
    ('ProvisioningRun', 'APPLYING', 'completePartially', 'PARTIALLY_APPLIED'),
    ('ProvisioningRun', 'APPLYING', 'fail', 'FAILED'),
    ('ProvisioningRun', 'APPLYING', 'loseExecutor', 'INDETERMINATE'),
    ('ProvisioningRun', 'APPROVED', 'cancel', 'CANCELLED'),
    ('ProvisioningRun', 'APPROVED', 'expire', 'EXPIRED'),
    ('ProvisioningRun', 'APPROVED', 'startApply', 'APPLYING'),
    ('ProvisioningRun', 'APPROVED', 'supersede', 'SUPERSEDED'),
    ('ProvisioningRun', 'AWAITING_APPROVAL', 'approve', 'APPROVED'),
    ('ProvisioningRun', 'AWAITING_APPROVAL', 'cancel', 'CANCELLED'),
    ('ProvisioningRun', 'AWAITING_APPROVAL', 'expire', 'EXPIRED'),
    ('ProvisioningRun', 'AWAITING_APPROVAL', 'reject', 'REJECTED'),
    ('ProvisioningRun', 'AWAITING_APPROVAL', 'supersede', 'SUPERSEDED'),
    ('ProvisioningRun', 'CANCELLING', 'complete', 'APPLIED'),
    ('ProvisioningRun', 'CANCELLING', 'completePartially', 'PARTIALLY_APPLIED'),
    ('ProvisioningRun', 'CANCELLING', 'fail', 'FAILED'),
    ('ProvisioningRun', 'CANCELLING', 'force', 'CANCELLING'),
    ('ProvisioningRun', 'CANCELLING', 'loseExecutor', 'CANCELLED'),
    ('ProvisioningRun', 'CANCELLING', 'loseExecutor', 'INDETERMINATE'),
    ('ProvisioningRun', 'CANCELLING', 'stopped', 'CANCELLED'),
    ('ProvisioningRun', 'INDETERMINATE', 'resolve', 'RESOLVED'),
    ('ProvisioningRun', 'PLANNING', 'cancel', 'CANCELLING'),
    ('ProvisioningRun', 'PLANNING', 'fail', 'FAILED'),
    ('ProvisioningRun', 'PLANNING', 'loseExecutor', 'QUEUED'),
    ('ProvisioningRun', 'PLANNING', 'plan', 'APPLIED'),
    ('ProvisioningRun', 'PLANNING', 'plan', 'APPROVED'),
    ('ProvisioningRun', 'PLANNING', 'plan', 'AWAITING_APPROVAL'),
    ('ProvisioningRun', 'PLANNING', 'plan', 'PLANNED'),
    ('ProvisioningRun', 'QUEUED', 'cancel', 'CANCELLED'),
    ('ProvisioningRun', 'QUEUED', 'start', 'PLANNING'),
    ('ProvisioningRun', 'QUEUED', 'supersede', 'SUPERSEDED'),
    ('ProvisioningRun', '[*]', 'create', 'QUEUED');
