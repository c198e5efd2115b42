import type { z } from 'zod';
import { submissionExample } from '../submissions/schemas.ts';
import type { addBody } from './schemas.ts';
import type { validateBody } from './submitted-docket.ts';

const { TransactionId, RegisterId, Payload, PayloadHash, Signatures, CreatedAt } = submissionExample;
const [signature] = Signatures;

export const addExample: z.input<typeof addBody> = {
  transaction: {
    txId: TransactionId,
    registerId: RegisterId,
    senderAddress: 'w1qexampleaddress',
    payload: Payload,
    payloadHash: PayloadHash,
    timestamp: CreatedAt,
    signature: {
      publicKey: signature?.PublicKey ?? '',
      signatureValue: signature?.SignatureValue ?? '',
      algorithm: signature?.Algorithm ?? '',
    },
  },
};

export const docketExample: z.input<typeof validateBody> = {
  docket: {
    registerId: RegisterId,
    docketNumber: 1,
    previousHash: '5d'.repeat(32),
    timestamp: CreatedAt,
    validatorAddress: 'w1qexampleaddress',
    transactionIds: [TransactionId],
    hash: '9f'.repeat(32),
    merkleRoot: '3c'.repeat(32),
  },
};
