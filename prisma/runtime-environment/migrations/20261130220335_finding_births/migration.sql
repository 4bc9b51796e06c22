-- AlterTable
ALTER TABLE "tracked_specification" ADD COLUMN     "applied_at" TIMESTAMPTZ(3);

-- CreateIndex
CREATE INDEX "finding_vanished" ON "finding"("vanished_at") WHERE (vanished_at IS NOT NULL);

-- LifecycleEdges
INSERT INTO "lifecycle_edge" ("aggregate", "from_state", "event", "to_state") VALUES
    ('DriftFinding', 'SUPPRESSED', 'suppress', 'SUPPRESSED'),
    ('DriftFinding', '[*]', 'suppress', 'SUPPRESSED'),
    ('ReconciliationProposal', 'ACCEPTING', 'adopt', 'ACCEPTING'),
    ('ReconciliationProposal', 'PROPOSED', 'failPreview', 'PROPOSED'),
    ('ReconciliationProposal', 'PROPOSED', 'preview', 'PROPOSED');
