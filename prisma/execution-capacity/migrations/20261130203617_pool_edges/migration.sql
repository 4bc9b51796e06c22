-- LifecycleEdges
INSERT INTO "lifecycle_edge" ("aggregate", "from_state", "event", "to_state") VALUES
    ('WorkerPool', 'CORDONED', 'cordon', 'CORDONED'),
    ('WorkerPool', 'DRAINING', 'drain', 'DRAINING'),
    ('WorkerPool', 'PROVISIONING', 'drain', 'DRAINING');
