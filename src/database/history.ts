import { sql } from './sql.ts';

/**
 * Identity of the history of a database: another one after a failover, once the new primary has
 * written its first checkpoint, and after a restore. The same after a restart.
 */
export const HISTORY = sql`concat_ws(' ', (pg_control_system()).system_identifier, (pg_control_checkpoint()).timeline_id)`;
