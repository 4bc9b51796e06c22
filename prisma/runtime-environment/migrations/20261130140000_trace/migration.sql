-- AlterTable
ALTER TABLE "inventory" ADD COLUMN     "look_causation_id" VARCHAR(128),
ADD COLUMN     "look_correlation_id" VARCHAR(128),
ADD COLUMN     "look_traceparent" VARCHAR(128);

-- AlterTable
ALTER TABLE "transition" ADD COLUMN     "traceparent" VARCHAR(128);
