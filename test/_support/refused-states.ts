import type { Pool } from "pg";

/**
 * Has the database refuse new versions of engine states: all of them, or only those that an engine sends, which holds
 * its state's lock then. Returns what ends that.
 */
export async function refuseStates(pool: Pool, whose: "everybody's" | "the engine's"): Promise<() => Promise<void>> {
  const isRefused =
    whose === "everybody's"
      ? "true"
      : `EXISTS (SELECT FROM engine_state WHERE environment_id = new.environment_id AND lock_id IS NOT NULL)`;
  await pool.query(`
    CREATE FUNCTION refuse_state() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF ${isRefused} THEN RAISE 'refused'; END IF;
      RETURN new;
    END $$;
    CREATE TRIGGER refuse_state BEFORE INSERT ON engine_state_version FOR EACH ROW EXECUTE FUNCTION refuse_state()`);
  return async () => {
    await pool.query("DROP TRIGGER refuse_state ON engine_state_version; DROP FUNCTION refuse_state()");
  };
}
