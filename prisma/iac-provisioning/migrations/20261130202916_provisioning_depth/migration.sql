-- AlterTable
ALTER TABLE "planned_change" ADD COLUMN     "deposed" VARCHAR(64),
ADD COLUMN     "import_id" TEXT,
ADD COLUMN     "previous_address" TEXT;

-- AlterTable
ALTER TABLE "provisioning_run" ADD COLUMN     "sealed_salvage" BYTEA,
ADD COLUMN     "sensitive_outputs" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- AlterTable
ALTER TABLE "receipt_entry" ADD COLUMN     "resource_type" VARCHAR(200) NOT NULL DEFAULT '';

-- CreateTable
CREATE TABLE "published_program" (
    "tenant_id" VARCHAR(128) NOT NULL,
    "name" VARCHAR(63) NOT NULL,
    "version" VARCHAR(64) NOT NULL,
    "digest" VARCHAR(71) NOT NULL,
    "archive" BYTEA NOT NULL,
    "published_by" VARCHAR(200) NOT NULL,
    "published_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "published_program_pkey" PRIMARY KEY ("tenant_id","name","version")
);

-- CreateIndex
CREATE INDEX "provisioning_run_open" ON "provisioning_run"("environment_id", "queued_at", "id") WHERE (state = ANY (ARRAY['QUEUED'::"RunState", 'PLANNING'::"RunState", 'AWAITING_APPROVAL'::"RunState", 'APPROVED'::"RunState", 'APPLYING'::"RunState", 'CANCELLING'::"RunState", 'INDETERMINATE'::"RunState"]));
