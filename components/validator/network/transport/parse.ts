import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import type { AppError } from '#core/errors/errors.ts';
import { RoundStep } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import type { PeerEvidence } from '../../chain/consensus/evidence.ts';
import { failure } from '../../errors.ts';
import type { CommitBundle, Envelope, SealedTransaction } from './transport.ts';

const maxMembers = 128;
const maxTransactions = 10_000;
const maxAnnounced = 512;
const maxHeads = 512;
/** Bound of a transaction that is sent with an announcement. */
const inlineBytes = 128 * 1024;

const registerId = z.string().regex(/^[0-9a-f]{32}$/);
const hex64 = z.string().regex(/^[0-9a-f]{64}$/);
const validatorId = z.string().regex(/^[A-Za-z0-9._-]{1,128}$/);
/** Kept verbatim and stored by the register service, so it must not contain characters that a database or a log cannot hold. */
const timestamp = z.string().regex(/^[\x20-\x7e]{1,64}$/);
const address = z.string().regex(/^[A-Za-z0-9:._-]{1,128}$/);
const words = z.string().regex(/^[^\p{Cc}\p{Cs}]*$/u);
const round = z.int().min(0).max(0x7fff_ffff);
const earlierRound = z.int().min(-1).max(0x7fff_ffff);
const wholeNumber = z.bigint().min(0n).max(BigInt(Number.MAX_SAFE_INTEGER)).transform(Number);
const bytes = z.instanceof(Uint8Array);
const hash = bytes.refine((value) => value.length === 32, 'expected 32 bytes').transform(encodeHex);
const optionalHash = bytes
  .refine((value) => value.length === 32 || value.length === 0, 'expected 32 bytes or none')
  .transform(encodeHex);
const signature = bytes.refine((value) => value.length === 64, 'expected 64 bytes').transform(encodeBase64);

const headerSchema = z
  .object({
    registerId,
    docketNumber: wholeNumber,
    previousHash: hex64,
    timestamp,
    validatorAddress: address,
    transactionIds: z.array(hex64).min(1).max(maxTransactions),
    merkleRoot: hex64,
    logRoot: hex64,
    validatorSetHash: hex64,
    hash: hex64,
    isGenesis: z.boolean(),
    genesisConfig: z.string().max(1024 * 1024),
    sizeBytes: wholeNumber,
  })
  .refine(
    ({ genesisConfig, docketNumber }) => genesisConfig === '' || docketNumber === 0,
    'only docket 0 has a genesis configuration',
  )
  .transform(({ genesisConfig, ...header }) =>
    genesisConfig === '' ? header : { ...header, genesisConfig },
  );

const certificateSchema = z.object({
  version: z.literal(1),
  height: wholeNumber,
  round,
  docketHash: hex64,
  merkleRoot: hex64,
  logRoot: hex64,
  validatorSetHash: hex64,
  signatures: z
    .array(z.object({ validatorId, index: z.int().min(0).max(maxMembers), timestamp, signature }))
    .max(maxMembers),
});

const recordHashes = z.array(hash).max(maxTransactions);

const proposalSchema = z
  .object({
    height: wholeNumber,
    round,
    polRound: earlierRound,
    docketHash: hash,
    merkleRoot: hash,
    logRoot: hash,
    timestamp,
    validatorId,
    signature,
  })
  .transform(({ docketHash, merkleRoot, logRoot, timestamp: at, ...rest }) => ({
    kind: 'proposal' as const,
    ...rest,
    value: { hash: docketHash, merkleRoot, logRoot, timestamp: at },
  }));

const voteSchema = z
  .object({
    type: z.union([z.literal(2), z.literal(3)]),
    height: wholeNumber,
    round,
    docketHash: optionalHash,
    merkleRoot: optionalHash,
    logRoot: optionalHash,
    timestamp,
    validatorId,
    signature,
  })
  .refine(
    ({ docketHash, merkleRoot, logRoot }) =>
      new Set([docketHash, merkleRoot, logRoot].map(isNone)).size === 1,
    'a vote has either all three hashes of a docket or none',
  )
  .transform(({ type, docketHash, merkleRoot, logRoot, ...rest }) => ({
    kind: type === 2 ? ('prevote' as const) : ('precommit' as const),
    ...rest,
    value: isNone(docketHash) ? undefined : { hash: docketHash, merkleRoot, logRoot },
  }));

function isNone(text: string): boolean {
  return text === '';
}

const attestationSchema = z
  .object({
    docketHash: hex64,
    validatorId,
    validatorAddress: address,
    approved: z.boolean(),
    timestamp,
    algorithm: z.literal('ED25519'),
    publicKey: z.string().regex(/^[A-Za-z0-9+/]{1,126}={0,2}$/),
    signature: bytes.refine((value) => value.length === 64).transform(encodeHex),
    reason: words.max(512),
  })
  .transform(({ reason, ...vote }) => (reason === '' ? vote : { ...vote, reason }));

const steps = {
  [RoundStep.IDLE]: 'idle',
  [RoundStep.PROPOSE]: 'propose',
  [RoundStep.PREVOTE]: 'prevote',
  [RoundStep.PRECOMMIT]: 'precommit',
  [RoundStep.DECIDED]: 'decided',
} as const;
const step = z
  .literal([RoundStep.IDLE, RoundStep.PROPOSE, RoundStep.PREVOTE, RoundStep.PRECOMMIT, RoundStep.DECIDED])
  .transform((value) => steps[value]);

const places = z.array(z.int().min(0).max(maxMembers)).max(maxMembers);
const headHash = z.union([hex64, z.literal('')]);
const roundStateSchema = z.object({
  height: wholeNumber,
  round,
  step,
  lockedRound: earlierRound,
  validRound: earlierRound,
  headHash,
  hasProposal: z.boolean(),
  prevotes: places,
  precommits: places,
});

const heartbeatSchema = z.object({
  validatorId,
  atMs: wholeNumber,
  version: words.max(64),
  heads: z.array(z.object({ registerId, height: wholeNumber, round, headHash })).max(maxHeads),
  draining: z.boolean(),
});

const transactionSchema = z.object({
  record: bytes,
  payload: bytes,
  payloadHashForm: z.enum(['jcs', 'compact']),
});
const hintSchema = z.object({
  transactionIds: z.array(hash).max(maxAnnounced),
  transactions: z
    .array(transactionSchema.refine(({ record, payload }) => record.length + payload.length <= inlineBytes))
    .max(maxAnnounced),
});

const evidenceSchema = z.discriminatedUnion('case', [
  z.object({
    case: z.literal('duplicateProposal'),
    value: z.object({ first: proposalSchema, second: proposalSchema }),
  }),
  z.object({ case: z.literal('duplicateVote'), value: z.object({ first: voteSchema, second: voteSchema }) }),
  z.object({
    case: z.literal('conflictingCertificate'),
    value: z.object({ first: certificateSchema, second: certificateSchema }),
  }),
]);

const of = <const C extends string, S extends z.ZodType>(name: C, value: S) =>
  z.object({ case: z.literal(name), value });

const envelopeSchema = z.object({
  registerId: z.union([registerId, z.literal('')]),
  message: z.discriminatedUnion('case', [
    of('proposal', z.object({ proposal: proposalSchema, header: headerSchema, recordHashes })),
    of('vote', voteSchema),
    of('attestation', z.object({ docketNumber: wholeNumber, attestation: attestationSchema })),
    of('roundState', roundStateSchema),
    of('stored', z.object({ height: wholeNumber, attested: z.array(validatorId).max(maxMembers) })),
    of('heartbeat', heartbeatSchema),
    of('hint', hintSchema),
    of('evidence', z.object({ evidence: evidenceSchema })),
  ]),
});

type Parsed = z.output<typeof envelopeSchema>;

/**
 * Parses another validator's envelope from the decoded protobuf message: every field within bounds, nothing verified.
 * @throws AppError invalid INVALID_ENVELOPE
 */
export function parseEnvelope(message: unknown): Envelope {
  const parsed = parse(envelopeSchema, message);
  const envelope = envelopeOf(parsed);
  if ((envelope.registerId === '') !== (envelope.kind === 'heartbeat')) throw refused();
  return envelope;
}

function envelopeOf({ registerId: id, message }: Parsed): Envelope {
  switch (message.case) {
    case 'proposal':
      return { kind: 'proposal', registerId: id, ...message.value };
    case 'vote':
      return { kind: 'vote', registerId: id, vote: message.value };
    case 'attestation': {
      const { docketNumber, attestation } = message.value;
      return { kind: 'attestation', registerId: id, docketNumber, vote: attestation };
    }
    case 'roundState':
      return { kind: 'round-state', registerId: id, ...message.value };
    case 'stored':
      return { kind: 'stored', registerId: id, ...message.value };
    case 'heartbeat':
      if (id !== '') throw refused();
      return { kind: 'heartbeat', registerId: '', ...message.value };
    case 'hint':
      return { kind: 'hint', registerId: id, ...message.value };
    case 'evidence':
      return { kind: 'evidence', registerId: id, evidence: evidenceOf(message.value.evidence) };
  }
}

function evidenceOf(evidence: z.output<typeof evidenceSchema>): PeerEvidence {
  switch (evidence.case) {
    case 'duplicateProposal':
      return { kind: 'duplicate-proposal', ...evidence.value };
    case 'duplicateVote':
      return { kind: 'duplicate-vote', ...evidence.value };
    case 'conflictingCertificate':
      return { kind: 'conflicting-certificate', ...evidence.value };
  }
}

const heldSchema = z.object({ evidence: evidenceSchema });

/**
 * Parses evidence from the decoded message, unverified.
 * @throws AppError invalid INVALID_ENVELOPE
 */
export function parseEvidence(message: unknown): PeerEvidence {
  return evidenceOf(parse(heldSchema, message).evidence);
}

const commitSchema = z.object({ header: headerSchema, certificate: certificateSchema, recordHashes });

/** Undefined when the peer has no such commit. Throws AppError invalid INVALID_ENVELOPE. */
export function parseCommit(message: { header?: unknown }): CommitBundle | undefined {
  return message.header === undefined ? undefined : parse(commitSchema, message);
}

const recordsSchema = z.object({ transactions: z.array(transactionSchema).max(maxTransactions) });

/** Throws AppError invalid INVALID_ENVELOPE. */
export function parseRecords(message: unknown): readonly SealedTransaction[] {
  return parse(recordsSchema, message).transactions;
}

const recordsRequestSchema = z.object({ registerId, transactionIds: z.array(hash).max(maxTransactions) });
const commitRequestSchema = z.object({ registerId, height: wholeNumber });

/** Throws AppError invalid INVALID_ENVELOPE. */
export function parseRecordsRequest(message: unknown) {
  return parse(recordsRequestSchema, message);
}

/** Throws AppError invalid INVALID_ENVELOPE. */
export function parseCommitRequest(message: unknown) {
  return parse(commitRequestSchema, message);
}

function parse<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (!result.success) throw refused(result.error);
  return result.data;
}

function refused(cause?: unknown): AppError {
  return failure('INVALID_ENVELOPE', { cause });
}
