import { z } from 'zod';

const text = z.string();

/** A transaction that is signed, as the register service takes it; also as it is stored. */
export const signedTransaction = z.object({
  registerId: text,
  type: text,
  payloadHash: text,
  createdAt: text,
  metadata: z.record(text, text),
  /** 64 lower-case hexadecimal characters. */
  id: text,
  /** JSON text whose bytes were hashed. */
  payload: text,
  signature: z.object({ publicKey: text, signatureValue: text, algorithm: text }),
  /** Wallet address of the organisation. */
  sender: text,
});
export type SignedTransaction = z.output<typeof signedTransaction>;

/** Where a transaction is: `unknown` to the register, or refused by its validators. */
type TransactionState = 'sealed' | 'pending' | 'unknown' | 'refused';

/** The register service. Errors: unavailable REGISTERS_UNAVAILABLE. */
export interface Registers {
  exists(registerId: string): Promise<boolean>;
  stateOf(registerId: string, transactionId: string): Promise<TransactionState>;
  /** Submits a transaction; submitting it again adds nothing. @returns why it was refused; undefined when it was taken */
  submit(transaction: SignedTransaction): Promise<string | undefined>;
}
