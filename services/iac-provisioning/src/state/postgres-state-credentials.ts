import { z } from "zod";
import type { Queryable } from "./queryable.ts";
import { hashPassword, type StateCredentials } from "./state-credentials.ts";

/** The longest that one executor can work on one run; the run's end revokes earlier. */
const CREDENTIAL_TTL_SECONDS = 24 * 60 * 60;

const grantRow = z.object({
  tenantId: z.string(),
  environmentId: z.string(),
  kind: z.string(),
  epoch: z.int(),
  access: z.enum(["read", "write"]),
});

/** StateCredentials in PostgreSQL. `newPassword` gives at least 128 random bits as text without a colon. */
export function postgresStateCredentials(db: Queryable, newPassword: () => string): StateCredentials {
  return {
    async grant({ holderId, key, epoch, access }) {
      const password = newPassword();
      const { tenantId, environmentId, kind } = key;
      const values = [
        holderId,
        tenantId,
        environmentId,
        kind,
        epoch,
        access,
        hashPassword(password),
        CREDENTIAL_TTL_SECONDS,
      ];
      const { rowCount } = await db.query(GRANT, values);
      return rowCount === 1 ? password : undefined;
    },

    async verify(holderId, password) {
      const { rows } = await db.query(VERIFY, [holderId, hashPassword(password)]);
      if (rows[0] === undefined) return undefined;
      const { epoch, access, ...key } = grantRow.parse(rows[0]);
      return { holderId, key, epoch, access };
    },

    async revoke(holderId) {
      await db.query(REVOKE, [holderId]);
    },
  };
}

const GRANT = `
  INSERT INTO engine_state_credential
    (holder_id, tenant_id, environment_id, kind, epoch, access, password_hash, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8 * interval '1 second')
  ON CONFLICT (holder_id) DO UPDATE
  SET tenant_id = $2, environment_id = $3, kind = $4, epoch = $5, access = $6, password_hash = $7,
      expires_at = excluded.expires_at
  WHERE engine_state_credential.epoch <= $5`;

const VERIFY = `
  SELECT tenant_id AS "tenantId", environment_id AS "environmentId", kind, epoch, access
  FROM engine_state_credential
  WHERE holder_id = $1 AND password_hash = $2 AND expires_at > clock_timestamp()`;

const REVOKE = `DELETE FROM engine_state_credential WHERE holder_id = $1`;
