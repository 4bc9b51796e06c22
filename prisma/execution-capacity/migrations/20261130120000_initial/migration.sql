-- CreateEnum
CREATE TYPE "PoolKind" AS ENUM ('RUN_WORKERS', 'SANDBOX_HOSTS', 'GENERAL');

-- CreateEnum
CREATE TYPE "PoolScaling" AS ENUM ('STATIC', 'ELASTIC');

-- CreateEnum
CREATE TYPE "PoolState" AS ENUM ('PROVISIONING', 'ACTIVE', 'CORDONED', 'DRAINING', 'DRAINED', 'RETIRED');

-- CreateEnum
CREATE TYPE "QuotaState" AS ENUM ('ACTIVE', 'RETIRED');

-- CreateEnum
CREATE TYPE "LeaseState" AS ENUM ('WAITING', 'ACTIVE', 'RELEASED', 'EXPIRED', 'REVOKED', 'CANCELLED');

-- CreateEnum
CREATE TYPE "ReleaseReason" AS ENUM ('HOLDER', 'ATTEMPT_OUTCOME', 'SANDBOX_RELEASED', 'TTL', 'OPERATOR', 'DRAIN_DEADLINE');

-- CreateEnum
CREATE TYPE "WaitReason" AS ENUM ('TENANT_QUOTA', 'PROJECT_QUOTA', 'POOL_FULL', 'POOL_NOT_ACCEPTING');

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
CREATE TABLE "worker_pool" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "id" VARCHAR(63) NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "PoolState" NOT NULL,
    "kind" "PoolKind" NOT NULL,
    "scaling" "PoolScaling" NOT NULL,
    "current_size" INTEGER NOT NULL,
    "desired_size" INTEGER NOT NULL,
    "generation" INTEGER NOT NULL DEFAULT 0,
    "used" INTEGER NOT NULL DEFAULT 0,
    "next_token" BIGINT NOT NULL DEFAULT 1,
    "environment_id" VARCHAR(128),
    "program_version" VARCHAR(128),
    "shared" BOOLEAN NOT NULL DEFAULT false,
    "resize_due_at" TIMESTAMPTZ(3),
    "drain_deadline" TIMESTAMPTZ(3),
    "note" VARCHAR(1000),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "worker_pool_pkey" PRIMARY KEY ("tenant_id","id")
);

-- CreateTable
CREATE TABLE "pool_label" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "pool_id" VARCHAR(63) NOT NULL,
    "name" VARCHAR(63) NOT NULL,
    "value" VARCHAR(200) NOT NULL,

    CONSTRAINT "pool_label_pkey" PRIMARY KEY ("tenant_id","pool_id","name")
);

-- CreateTable
CREATE TABLE "quota" (
    "id" UUID NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "QuotaState" NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL DEFAULT '',
    "concurrent_runs" INTEGER NOT NULL,
    "concurrent_sandboxes" INTEGER NOT NULL,
    "weight" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "quota_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "scope_usage" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL DEFAULT '',
    "used_runs" INTEGER NOT NULL DEFAULT 0,
    "used_sandboxes" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "scope_usage_pkey" PRIMARY KEY ("tenant_id","project_id")
);

-- CreateTable
CREATE TABLE "capacity_lease" (
    "id" UUID NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "LeaseState" NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "holder_kind" VARCHAR(63) NOT NULL,
    "holder_id" VARCHAR(128) NOT NULL,
    "pool_tenant_id" VARCHAR(128) NOT NULL,
    "pool_id" VARCHAR(63) NOT NULL,
    "units" INTEGER NOT NULL,
    "priority" INTEGER NOT NULL DEFAULT 0,
    "ttl_seconds" INTEGER NOT NULL,
    "fencing_token" BIGINT,
    "requested_at" TIMESTAMPTZ(3) NOT NULL,
    "arrival" BIGSERIAL NOT NULL,
    "wait_reason" "WaitReason",
    "wait_deadline" TIMESTAMPTZ(3),
    "granted_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "release_reason" "ReleaseReason",
    "execution_seconds" BIGINT,

    CONSTRAINT "capacity_lease_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "ended_holder" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "holder_kind" VARCHAR(63) NOT NULL,
    "holder_id" VARCHAR(128) NOT NULL,
    "ended_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "ended_holder_pkey" PRIMARY KEY ("tenant_id","holder_kind","holder_id")
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
CREATE INDEX "worker_pool_state_drain_deadline_idx" ON "worker_pool"("state", "drain_deadline");

-- CreateIndex
CREATE INDEX "worker_pool_resize_due_at_idx" ON "worker_pool"("resize_due_at");

-- CreateIndex
CREATE UNIQUE INDEX "worker_pool_one_shared_per_name" ON "worker_pool"("id") WHERE (shared);

-- CreateIndex
CREATE UNIQUE INDEX "quota_one_per_scope" ON "quota"("tenant_id", "project_id") WHERE (state = 'ACTIVE');

-- CreateIndex
CREATE INDEX "capacity_lease_waiters" ON "capacity_lease"("pool_tenant_id", "pool_id", "priority" DESC, "arrival") WHERE (state = 'WAITING');

-- CreateIndex
CREATE INDEX "capacity_lease_tenant_id_holder_kind_holder_id_idx" ON "capacity_lease"("tenant_id", "holder_kind", "holder_id");

-- CreateIndex
CREATE INDEX "capacity_lease_tenant_id_id_idx" ON "capacity_lease"("tenant_id", "id");

-- CreateIndex
CREATE INDEX "capacity_lease_pool_tenant_id_pool_id_state_idx" ON "capacity_lease"("pool_tenant_id", "pool_id", "state");

-- CreateIndex
CREATE INDEX "capacity_lease_state_expires_at_idx" ON "capacity_lease"("state", "expires_at");

-- CreateIndex
CREATE INDEX "capacity_lease_state_wait_deadline_idx" ON "capacity_lease"("state", "wait_deadline");

-- CreateIndex
CREATE UNIQUE INDEX "capacity_lease_one_per_holder" ON "capacity_lease"("tenant_id", "holder_kind", "holder_id", "pool_tenant_id", "pool_id") WHERE (state = 'WAITING') OR (state = 'ACTIVE');

-- CreateIndex
CREATE INDEX "ended_holder_ended_at_idx" ON "ended_holder"("ended_at");

-- AddForeignKey
ALTER TABLE "transition" ADD CONSTRAINT "transition_aggregate_from_state_event_to_state_fkey" FOREIGN KEY ("aggregate", "from_state", "event", "to_state") REFERENCES "lifecycle_edge"("aggregate", "from_state", "event", "to_state") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "pool_label" ADD CONSTRAINT "pool_label_tenant_id_pool_id_fkey" FOREIGN KEY ("tenant_id", "pool_id") REFERENCES "worker_pool"("tenant_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "capacity_lease" ADD CONSTRAINT "capacity_lease_pool_tenant_id_pool_id_fkey" FOREIGN KEY ("pool_tenant_id", "pool_id") REFERENCES "worker_pool"("tenant_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- LifecycleEdges
INSERT INTO "lifecycle_edge" ("aggregate", "from_state", "event", "to_state") VALUES
    ('CapacityLease', 'ACTIVE', 'expire', 'EXPIRED'),
    ('CapacityLease', 'ACTIVE', 'release', 'RELEASED'),
    ('CapacityLease', 'ACTIVE', 'renew', 'ACTIVE'),
    ('CapacityLease', 'ACTIVE', 'revoke', 'REVOKED'),
    ('CapacityLease', 'WAITING', 'expire', 'CANCELLED'),
    ('CapacityLease', 'WAITING', 'grant', 'ACTIVE'),
    ('CapacityLease', 'WAITING', 'release', 'CANCELLED'),
    ('CapacityLease', 'WAITING', 'revoke', 'CANCELLED'),
    ('CapacityLease', '[*]', 'create', 'WAITING'),
    ('Quota', 'ACTIVE', 'exceed', 'ACTIVE'),
    ('Quota', 'ACTIVE', 'retire', 'RETIRED'),
    ('Quota', 'ACTIVE', 'set', 'ACTIVE'),
    ('Quota', '[*]', 'create', 'ACTIVE'),
    ('WorkerPool', 'ACTIVE', 'cordon', 'CORDONED'),
    ('WorkerPool', 'ACTIVE', 'drain', 'DRAINING'),
    ('WorkerPool', 'ACTIVE', 'failProvisioning', 'ACTIVE'),
    ('WorkerPool', 'ACTIVE', 'provision', 'ACTIVE'),
    ('WorkerPool', 'ACTIVE', 'requestSize', 'ACTIVE'),
    ('WorkerPool', 'ACTIVE', 'resize', 'ACTIVE'),
    ('WorkerPool', 'CORDONED', 'drain', 'DRAINING'),
    ('WorkerPool', 'CORDONED', 'failProvisioning', 'CORDONED'),
    ('WorkerPool', 'CORDONED', 'provision', 'CORDONED'),
    ('WorkerPool', 'CORDONED', 'requestSize', 'CORDONED'),
    ('WorkerPool', 'CORDONED', 'resize', 'CORDONED'),
    ('WorkerPool', 'CORDONED', 'uncordon', 'ACTIVE'),
    ('WorkerPool', 'DRAINED', 'retire', 'RETIRED'),
    ('WorkerPool', 'DRAINING', 'empty', 'DRAINED'),
    ('WorkerPool', 'DRAINING', 'uncordon', 'ACTIVE'),
    ('WorkerPool', 'PROVISIONING', 'failProvisioning', 'PROVISIONING'),
    ('WorkerPool', 'PROVISIONING', 'provision', 'ACTIVE'),
    ('WorkerPool', 'PROVISIONING', 'requestSize', 'PROVISIONING'),
    ('WorkerPool', 'PROVISIONING', 'resize', 'ACTIVE'),
    ('WorkerPool', '[*]', 'create', 'PROVISIONING');
