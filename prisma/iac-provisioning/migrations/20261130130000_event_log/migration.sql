-- DropIndex
DROP INDEX "outbox_message_position_key";

-- DropIndex
DROP INDEX "outbox_message_published_at_idx";

-- CreateTable
CREATE TABLE "unsequenced_event" (
    "position" BIGINT NOT NULL,
    "message_id" UUID NOT NULL,

    CONSTRAINT "unsequenced_event_pkey" PRIMARY KEY ("position")
);

-- CreateTable
CREATE TABLE "event_log" (
    "sequence" BIGINT NOT NULL,
    "recorded_at" TIMESTAMPTZ(3) NOT NULL,
    "message_id" UUID NOT NULL,
    "topic" VARCHAR(200) NOT NULL,
    "tenant_id" VARCHAR(128) NOT NULL,
    "subject" VARCHAR(128) NOT NULL,

    CONSTRAINT "event_log_pkey" PRIMARY KEY ("sequence")
);

-- CreateTable
CREATE TABLE "event_log_bounds" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "newest" BIGINT NOT NULL DEFAULT 0,
    "newest_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "removed" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "event_log_bounds_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "event_log_tenant_id_sequence_idx" ON "event_log"("tenant_id", "sequence");

-- CreateIndex
CREATE INDEX "event_log_recorded_at_idx" ON "event_log"("recorded_at");

INSERT INTO "event_log_bounds" DEFAULT VALUES;

-- Queues what is inserted for its place in the log. It notifies nobody: commits that do wait for each other, and whoever
-- commits tells the relay and the sequencer of its own process. Both poll.
CREATE FUNCTION outbox_grew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO unsequenced_event (position, message_id) SELECT position, id FROM added;
    RETURN NULL;
END $$;

DROP TRIGGER notify_outbox ON "outbox_message";
DROP FUNCTION notify_outbox();
CREATE TRIGGER outbox_grew
    AFTER INSERT ON "outbox_message"
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION outbox_grew();

-- After the trigger: dropping the indexes waited for every insert under way, and holds off others until the commit.
INSERT INTO "unsequenced_event" ("position", "message_id") SELECT "position", "id" FROM "outbox_message";
