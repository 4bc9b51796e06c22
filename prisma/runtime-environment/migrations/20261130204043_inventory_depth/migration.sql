-- CreateEnum
CREATE TYPE "FindingSeverity" AS ENUM ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL');

-- CreateEnum
CREATE TYPE "FindingGrouping" AS ENUM ('SPECIFICATION', 'RESOURCE');

-- CreateEnum
CREATE TYPE "PreviewState" AS ENUM ('PENDING', 'READY', 'FAILED');

-- AlterTable
ALTER TABLE "component" ADD COLUMN     "health_url" VARCHAR(2000),
ADD COLUMN     "version_url" VARCHAR(2000);

-- AlterTable
ALTER TABLE "finding" ADD COLUMN     "changed_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
ADD COLUMN     "observer" VARCHAR(40) NOT NULL DEFAULT 'engine',
ADD COLUMN     "previous_finding_id" UUID,
ADD COLUMN     "severity" "FindingSeverity" NOT NULL DEFAULT 'MEDIUM',
ADD COLUMN     "suppression_rule_id" UUID,
ADD COLUMN     "vanished_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "inventory" ADD COLUMN     "grouping" "FindingGrouping" NOT NULL DEFAULT 'SPECIFICATION',
ADD COLUMN     "observers" JSONB NOT NULL DEFAULT '{}',
ADD COLUMN     "propose_direction" "ReconciliationDirection" NOT NULL DEFAULT 'REVERT_TO_SPECIFICATION',
ADD COLUMN     "revision" BIGINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "observer_report" ADD COLUMN     "failures" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "retry_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "proposal" ADD COLUMN     "adopted_id" UUID,
ADD COLUMN     "plan_digest" VARCHAR(71),
ADD COLUMN     "preview" JSONB,
ADD COLUMN     "preview_run_id" UUID,
ADD COLUMN     "preview_state" "PreviewState" NOT NULL DEFAULT 'PENDING',
ADD COLUMN     "superseded_by" UUID;

-- CreateTable
CREATE TABLE "inventory_change" (
    "inventory_id" VARCHAR(128) NOT NULL,
    "revision" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "actor" VARCHAR(200) NOT NULL,
    "facts" JSONB NOT NULL,

    CONSTRAINT "inventory_change_pkey" PRIMARY KEY ("inventory_id","revision")
);

-- CreateTable
CREATE TABLE "suppression_rule" (
    "id" UUID NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "environment_id" VARCHAR(128) NOT NULL,
    "kinds" "DriftKind"[],
    "resource_pattern" VARCHAR(500) NOT NULL,
    "attribute_pattern" VARCHAR(500) NOT NULL,
    "reason" VARCHAR(1000) NOT NULL,
    "until" TIMESTAMPTZ(3) NOT NULL,
    "created_by" VARCHAR(200) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "suppression_rule_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "inventory_change_at_idx" ON "inventory_change"("at");

-- CreateIndex
CREATE INDEX "suppression_rule_environment_id_ended_at_idx" ON "suppression_rule"("environment_id", "ended_at");

-- CreateIndex
CREATE INDEX "suppression_rule_ended_at_until_idx" ON "suppression_rule"("ended_at", "until");

-- CreateIndex
CREATE INDEX "finding_environment_id_fingerprint_idx" ON "finding"("environment_id", "fingerprint");

-- CreateIndex
CREATE INDEX "finding_suppression_rule_id_idx" ON "finding"("suppression_rule_id");

-- AddForeignKey
ALTER TABLE "inventory_change" ADD CONSTRAINT "inventory_change_inventory_id_fkey" FOREIGN KEY ("inventory_id") REFERENCES "inventory"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "suppression_rule" ADD CONSTRAINT "suppression_rule_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "inventory"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "finding" ADD CONSTRAINT "finding_suppression_rule_id_fkey" FOREIGN KEY ("suppression_rule_id") REFERENCES "suppression_rule"("id") ON DELETE SET NULL ON UPDATE CASCADE;
