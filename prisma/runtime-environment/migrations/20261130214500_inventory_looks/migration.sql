-- DropIndex
DROP INDEX "inventory_state_observe_at_idx";

-- AlterTable
ALTER TABLE "tracked_specification" ADD COLUMN     "resource_count" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "resources_digest" VARCHAR(71);

-- CreateIndex
CREATE INDEX "inventory_observed_by_schedule" ON "inventory"("observe_at") WHERE (state <> 'RETIRED');
