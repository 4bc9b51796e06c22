-- CreateEnum
CREATE TYPE "CapacityResource" AS ENUM ('RUNS', 'SANDBOXES');

-- DropForeignKey
ALTER TABLE "capacity_lease" DROP CONSTRAINT "capacity_lease_pool_tenant_id_pool_id_fkey";

-- DropIndex
DROP INDEX "capacity_lease_one_per_holder";

-- DropIndex
DROP INDEX "capacity_lease_pool_tenant_id_pool_id_state_idx";

-- DropIndex
DROP INDEX "capacity_lease_state_expires_at_idx";

-- DropIndex
DROP INDEX "capacity_lease_state_wait_deadline_idx";

-- DropIndex
DROP INDEX "capacity_lease_tenant_id_holder_kind_holder_id_idx";

-- DropIndex
DROP INDEX "capacity_lease_tenant_id_id_idx";

-- DropIndex
DROP INDEX "capacity_lease_waiters";

-- AlterTable
ALTER TABLE "capacity_lease" DROP CONSTRAINT "capacity_lease_pkey",
DROP COLUMN "arrival",
ADD COLUMN     "due_at" TIMESTAMPTZ(3),
ADD COLUMN     "resource" "CapacityResource" NOT NULL,
ADD CONSTRAINT "capacity_lease_pkey" PRIMARY KEY ("tenant_id", "id");

-- AlterTable
ALTER TABLE "scope_usage" ADD COLUMN     "execution_seconds" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN     "revision" BIGINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "worker_pool" ADD COLUMN     "contended" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "resize_run_id" UUID,
ADD COLUMN     "resume_at" TIMESTAMPTZ(3),
ADD COLUMN     "revision" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN     "selecting" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "virtual_time" DOUBLE PRECISION NOT NULL DEFAULT 0,
ADD COLUMN     "waiting" INTEGER NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "past_lease" (
    "id" UUID NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 0,
    "state" "LeaseState" NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "holder_kind" VARCHAR(63) NOT NULL,
    "holder_id" VARCHAR(128) NOT NULL,
    "resource" "CapacityResource" NOT NULL,
    "pool_tenant_id" VARCHAR(128) NOT NULL,
    "pool_id" VARCHAR(63) NOT NULL,
    "units" INTEGER NOT NULL,
    "priority" INTEGER NOT NULL DEFAULT 0,
    "ttl_seconds" INTEGER NOT NULL,
    "fencing_token" BIGINT,
    "requested_at" TIMESTAMPTZ(3) NOT NULL,
    "wait_reason" "WaitReason",
    "wait_deadline" TIMESTAMPTZ(3),
    "granted_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "release_reason" "ReleaseReason",
    "execution_seconds" BIGINT,

    CONSTRAINT "past_lease_pkey" PRIMARY KEY ("tenant_id","id")
);

-- CreateTable
CREATE TABLE "queue_place" (
    "pool_tenant_id" VARCHAR(128) NOT NULL,
    "pool_id" VARCHAR(63) NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL,
    "priority" INTEGER NOT NULL,
    "arrival" BIGSERIAL NOT NULL,
    "lease_id" UUID NOT NULL,
    "selecting" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "queue_place_pkey" PRIMARY KEY ("tenant_id","lease_id","pool_tenant_id","pool_id")
);

-- CreateTable
CREATE TABLE "waiter_selector" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "lease_id" UUID NOT NULL,
    "kind" "PoolKind" NOT NULL,
    "labels" JSONB NOT NULL,

    CONSTRAINT "waiter_selector_pkey" PRIMARY KEY ("tenant_id","lease_id")
);

-- CreateTable
CREATE TABLE "fair_share" (
    "pool_tenant_id" VARCHAR(128) NOT NULL,
    "pool_id" VARCHAR(63) NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "project_id" VARCHAR(128) NOT NULL DEFAULT '',
    "waiting" INTEGER NOT NULL DEFAULT 0,
    "virtual_time" DOUBLE PRECISION NOT NULL DEFAULT 0,
    "inner_time" DOUBLE PRECISION NOT NULL DEFAULT 0,
    "contended" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "fair_share_pkey" PRIMARY KEY ("pool_tenant_id","pool_id","tenant_id","project_id")
);

-- CreateIndex
CREATE INDEX "past_lease_ended_at_idx" ON "past_lease"("ended_at");

-- CreateIndex
CREATE INDEX "queue_place_order" ON "queue_place"("pool_tenant_id", "pool_id", "tenant_id", "project_id", "priority" DESC, "arrival");

-- CreateIndex
CREATE INDEX "fair_share_waiting" ON "fair_share"("tenant_id") WHERE (waiting > 0);

-- CreateIndex
CREATE INDEX "capacity_lease_live" ON "capacity_lease"("pool_tenant_id", "pool_id", "due_at") WHERE (state = 'WAITING') OR (state = 'ACTIVE');

-- CreateIndex
CREATE INDEX "capacity_lease_ended" ON "capacity_lease"("ended_at") WHERE (ended_at IS NOT NULL);

-- CreateIndex
CREATE UNIQUE INDEX "capacity_lease_one_per_holder" ON "capacity_lease"("tenant_id", "holder_kind", "holder_id", "resource") WHERE (state = 'WAITING') OR (state = 'ACTIVE');

-- CreateIndex
CREATE INDEX "worker_pool_resume_at_idx" ON "worker_pool"("resume_at");

-- LifecycleEdges
INSERT INTO "lifecycle_edge" ("aggregate", "from_state", "event", "to_state") VALUES
    ('CapacityLease', '[*]', 'grant', 'ACTIVE');
