import { z } from 'zod';
import { findRegisterId, findTxId, type RegisterId, type TxId } from '#core/ledger/register-id.ts';

function identifier<T>(find: (text: string) => T | undefined, form: string) {
  return z.string().transform((value, context) => {
    const id = find(value);
    if (id !== undefined) return id;
    context.addIssue(form);
    return z.NEVER;
  });
}

/** The id of a register in a request, in either case; lower-case when it is parsed. */
export const registerIdSchema = identifier<RegisterId>(findRegisterId, '32 hexadecimal digits').describe(
  'The register, 32 hexadecimal digits.',
);

/** The id of a transaction in a request, in either case; lower-case when it is parsed. */
export const txIdSchema = identifier<TxId>(findTxId, '64 hexadecimal digits');
