import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { findAt, type KeyedRegister, sealedFacts } from '../../ledger/sealed/store.ts';
import { transactionsAt } from '../../ledger/values/store.ts';

interface SealedPayload {
  readonly transactionId: string;
  readonly payload: Uint8Array;
}

const mostBytes = 8 * 1024 * 1024;
/** Transactions that are read at a time. */
const chunk = 8;

/** Payloads by transaction id in the order of the ids, as far as they fit into 8 MiB; unknown ids are left out. */
export async function readPayloads(
  db: Reader<RegisterSchema>,
  register: KeyedRegister,
  txIds: readonly string[],
): Promise<{ readonly payloads: readonly SealedPayload[]; readonly complete: boolean }> {
  const { registerNo } = register;
  const facts = await sealedFacts(db, register, [...new Set(txIds)]);
  const located = txIds.flatMap((transactionId) => {
    const fact = facts.get(transactionId);
    return fact === undefined ? [] : [{ transactionId, registerNo, ...fact }];
  });
  const payloads: SealedPayload[] = [];
  let bytes = 0;
  for (let at = 0; at < located.length; at += chunk) {
    const some = located.slice(at, at + chunk);
    const stored = await transactionsAt(db, some);
    for (const [index, one] of some.entries()) {
      const payload = (stored.get(index) ?? (await findAt(db, one)))?.payload;
      // the register is being purged
      if (payload === undefined) continue;
      bytes += payload.length;
      if (bytes > mostBytes) return { payloads, complete: false };
      payloads.push({ transactionId: one.transactionId, payload });
    }
  }
  return { payloads, complete: true };
}
