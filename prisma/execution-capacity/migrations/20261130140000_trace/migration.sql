-- AlterTable
ALTER TABLE "transition" ADD COLUMN     "traceparent" VARCHAR(128);
