-- AlterTable
ALTER TABLE "component" ADD COLUMN     "health_reason" VARCHAR(300);

-- AlterTable
ALTER TABLE "inventory" ADD COLUMN     "health_reason" VARCHAR(1000);
