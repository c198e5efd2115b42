import type { Pool } from 'pg';
import { parseValue } from '../ledger/values/format.ts';

/**
 * Stores a docket as releases before the value did: its rows hold records, payloads, leaves and hash forms. Its index
 * rows must be written.
 */
export async function storeInOldForm(pool: Pool, registerNo: number, docketNumber: number): Promise<void> {
  const at = [registerNo, docketNumber];
  const where = 'where register_no = $1 and docket_number = $2';
  const { rows } = await pool.query(`delete from docket_values ${where} returning value`, at);
  for (const [position, one] of parseValue(rows[0].value).entries()) {
    await pool.query(
      `update transaction_rows set leaf = $4, payload_hash_form = $5, record = $6, payload = $7, instance_id = null
        ${where} and position = $3`,
      [...at, position, one.leaf, one.payloadHashForm, one.record, one.payload],
    );
  }
}
