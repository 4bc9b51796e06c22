import type pg from "pg";

/**
 * Lets time go by for everything that lives: all its instants move back, as the database's clock would have left them
 * behind. For when nothing is under way. The rows count as changed, so that what a process remembers of them is void.
 */
export async function elapse(database: pg.Pool, seconds: number): Promise<void> {
  await database.query(
    `WITH gone AS (SELECT make_interval(secs => $1) AS time),
     leases AS (
       UPDATE capacity_lease SET requested_at = requested_at - time, granted_at = granted_at - time,
         expires_at = expires_at - time, due_at = due_at - time, wait_deadline = wait_deadline - time,
         version = version + 1
       FROM gone WHERE state IN ('WAITING', 'ACTIVE')
     )
     UPDATE worker_pool SET drain_deadline = drain_deadline - time, resume_at = resume_at - time FROM gone`,
    [seconds],
  );
}
