-- AlterTable
ALTER TABLE "published_program" ADD COLUMN     "unpublished_at" TIMESTAMPTZ(3),
ALTER COLUMN "archive" DROP NOT NULL;

-- In PRODUCTION (separate_approver) a run goes on by somebody else's decision, or by the approval that a promotion came
-- with. In these two states decided_by is who approved it: later states overwrite it with who cancelled or resolved.
ALTER TABLE "provisioning_run" ADD CONSTRAINT "provisioning_run_approved_by_another" CHECK (
    NOT "separate_approver"
    OR "state" NOT IN ('APPROVED', 'APPLYING')
    OR ("decided_by" IS NOT NULL AND "decided_by" <> "requested_by")
    OR ("decided_by" IS NULL AND "kind" = 'PROMOTION' AND "approval_id" IS NOT NULL)
);
