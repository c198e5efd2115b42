import { z } from 'zod';
import figures from './ledger.json' with { type: 'json' };

const bytes64 = z.string().length(64);
const step = z.object({ hash: bytes64, position: z.enum(['Left', 'Right']) });
const member = z.object({ validatorId: z.string(), publicKey: z.string(), algorithm: z.literal('ED25519') });

const schema = z.strictObject({
  keys: z.array(z.object({ seed: bytes64, publicKey: z.string(), address: z.string() })),
  payloadHash: z.array(z.object({ payload: z.unknown(), canonical: z.string(), payloadHash: bytes64 })),
  transactions: z.array(
    z.object({
      payload: z.unknown(),
      envelope: z.object({
        registerId: z.string(),
        blueprintId: z.string(),
        actionId: z.string(),
        type: z.literal('Action'),
        payloadHash: bytes64,
        createdAt: z.string(),
        expiresAt: z.string().optional(),
        recipients: z.array(z.string()).optional(),
        metadata: z.record(z.string(), z.string()).optional(),
        previousTransactionId: z.string().optional(),
      }),
      txId: bytes64,
      signingDigest: bytes64,
      record: z.string(),
      leaf: bytes64,
    }),
  ),
  validatorSet: z.object({ members: z.array(member), validatorSetHash: bytes64 }),
  dockets: z.array(
    z.object({
      registerId: z.string(),
      docketNumber: z.number(),
      previousHash: bytes64,
      timestamp: z.string(),
      validatorAddress: z.string(),
      transactionIds: z.array(bytes64),
      validatorSetHash: bytes64,
      hash: bytes64,
      merkleRoot: bytes64,
      logLeaf: bytes64,
      logRoot: bytes64,
    }),
  ),
  inclusion: z.object({
    leaf: bytes64,
    leafIndex: z.number(),
    treeSize: z.number(),
    merkleRoot: bytes64,
    proofPath: z.array(step),
  }),
  tree: z.object({
    leaves: z.string(),
    roots: z.record(z.string(), bytes64),
    inclusion: z.array(z.object({ leafIndex: z.number(), treeSize: z.number(), proofPath: z.array(step) })),
    consistency: z.array(z.object({ from: z.number(), to: z.number(), path: z.array(bytes64) })),
  }),
  consensus: z.array(
    z.object({
      type: z.union([z.literal(1), z.literal(2), z.literal(3)]),
      networkId: z.string(),
      registerId: z.string(),
      height: z.number(),
      round: z.number(),
      polRound: z.number(),
      nil: z.boolean(),
      timestamp: z.string(),
      signBytes: z.string(),
      signer: z.string(),
      signature: z.string(),
    }),
  ),
  certificate: z.object({
    version: z.literal(1),
    height: z.number(),
    round: z.number(),
    docketHash: bytes64,
    merkleRoot: bytes64,
    logRoot: bytes64,
    validatorSetHash: bytes64,
    signatures: z.array(
      z.object({ validatorId: z.string(), index: z.number(), timestamp: z.string(), signature: z.string() }),
    ),
  }),
  attestation: z.object({ text: z.string(), algorithm: z.literal('ED25519'), signature: z.string() }),
  proofOfPossession: z.object({ bytes: z.string(), signature: z.string() }),
  ownerAttestation: z.object({
    attestationData: z.object({
      role: z.literal('Owner'),
      subject: z.string(),
      registerId: z.string(),
      registerName: z.string(),
      grantedAt: z.string(),
    }),
    dataToSign: bytes64,
    signature: z.string(),
  }),
  checkpoint: z.object({
    body: z.string(),
    note: z.string(),
    vkey: z.string(),
    cosignerVkeys: z.array(z.string()),
  }),
});

type LedgerVectors = z.output<typeof schema>;

/** The figures that an independent program computed for every hashed or signed format. An unread member is an error. */
export function readLedgerVectors(): LedgerVectors {
  return schema.parse(figures);
}

/** An element that a vector file must have. */
export function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new Error(`The vectors have no element ${index}`);
  return item;
}
