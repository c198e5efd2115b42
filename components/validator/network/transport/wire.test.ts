import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import {
  GetCommitResponseSchema,
  GetRecordsResponseSchema,
  StreamRequestSchema,
} from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { parseCommit, parseEnvelope, parseRecords } from './parse.ts';
import type { CommitBundle, Envelope } from './transport.ts';
import { wireCommit, wireEnvelope } from './wire.ts';

const registerId = 'ab'.repeat(16);
const hash = (byte: string) => byte.repeat(32);
const signature = Buffer.alloc(64, 7).toString('base64');
const value = { hash: hash('01'), merkleRoot: hash('02'), logRoot: hash('03') };
const timestamp = '2026-11-21T10:00:00.0000000+00:00';
const header = {
  registerId,
  docketNumber: 4,
  previousHash: hash('0a'),
  timestamp,
  validatorAddress: 'w1abc',
  transactionIds: [hash('0b'), hash('0c')],
  merkleRoot: value.merkleRoot,
  logRoot: value.logRoot,
  validatorSetHash: hash('0d'),
  hash: value.hash,
  isGenesis: false,
  sizeBytes: 1234,
};
const certificate = {
  version: 1 as const,
  height: 4,
  round: 2,
  docketHash: value.hash,
  merkleRoot: value.merkleRoot,
  logRoot: value.logRoot,
  validatorSetHash: hash('0d'),
  signatures: [{ validatorId: 'validator-1', index: 1, timestamp, signature }],
};
const proposal = {
  kind: 'proposal' as const,
  height: 4,
  round: 2,
  polRound: -1,
  value: { ...value, timestamp },
  validatorId: 'validator-1',
  signature,
};
const vote = {
  kind: 'prevote' as const,
  height: 4,
  round: 2,
  value,
  timestamp,
  validatorId: 'validator-2',
  signature,
};
const recordHashes = [hash('0e'), hash('0f')];
const transaction = {
  record: Buffer.from('{"a":1}'),
  payload: Buffer.from('{}'),
  payloadHashForm: 'jcs' as const,
};
const bundle: CommitBundle = { header, certificate, recordHashes };

const envelopes: Envelope[] = [
  { kind: 'proposal', registerId, proposal, header, recordHashes },
  {
    kind: 'proposal',
    registerId,
    proposal: { ...proposal, polRound: 1 },
    header: { ...header, docketNumber: 0, isGenesis: true, genesisConfig: '{"x":1}' },
    recordHashes,
  },
  { kind: 'vote', registerId, vote },
  { kind: 'vote', registerId, vote: { ...vote, kind: 'precommit', value: undefined } },
  {
    kind: 'attestation',
    registerId,
    docketNumber: 4,
    vote: {
      docketHash: value.hash,
      validatorAddress: 'w1abc',
      approved: true,
      timestamp,
      signature: 'ab'.repeat(64),
      validatorId: 'validator-1',
      algorithm: 'ED25519',
      publicKey: 'AAAA',
    },
  },
  {
    kind: 'round-state',
    registerId,
    height: 4,
    round: 2,
    step: 'prevote',
    lockedRound: -1,
    validRound: 1,
    headHash: hash('11'),
    hasProposal: true,
    prevotes: [0, 3],
    precommits: [],
  },
  { kind: 'stored', registerId, height: 5, attested: ['validator-0'] },
  {
    kind: 'heartbeat',
    registerId: '',
    validatorId: 'validator-1',
    atMs: 1_795_000_000_000,
    version: '0.1.0',
    heads: [{ registerId, height: 4, round: 0, headHash: '' }],
    draining: true,
  },
  { kind: 'hint', registerId, transactionIds: [hash('0b'), hash('0c')], transactions: [transaction] },
  {
    kind: 'evidence',
    registerId,
    evidence: { kind: 'duplicate-proposal', first: proposal, second: { ...proposal, polRound: 0 } },
  },
  {
    kind: 'evidence',
    registerId,
    evidence: { kind: 'duplicate-vote', first: vote, second: { ...vote, value: undefined } },
  },
  {
    kind: 'evidence',
    registerId,
    evidence: { kind: 'conflicting-certificate', first: certificate, second: { ...certificate, round: 3 } },
  },
];

function bytesOf(envelope: Envelope): Uint8Array {
  return toBinary(StreamRequestSchema, create(StreamRequestSchema, wireEnvelope(envelope)));
}

/** The result of decoding bytes: an envelope, or a refusal that exposes no internals. */
function outcome(bytes: Uint8Array): Envelope | 'not decoded' | 'refused' {
  let message: unknown;
  try {
    message = fromBinary(StreamRequestSchema, bytes);
  } catch {
    return 'not decoded';
  }
  try {
    return parseEnvelope(message);
  } catch (error) {
    if (isAppError(error, 'invalid') && error.code === 'INVALID_ENVELOPE') return 'refused';
    throw error;
  }
}

/** A copy without protobuf metadata, with bytes as plain arrays. */
function plain(envelope: unknown): unknown {
  return JSON.parse(
    JSON.stringify(envelope, (_key, each) => (each instanceof Uint8Array ? [...each] : each)),
  );
}

describe('the wire format between validators', () => {
  it.each(envelopes.map((envelope) => [envelope.kind, envelope] as const))(
    'carries a %s',
    (_kind, envelope) => {
      const back = outcome(bytesOf(envelope));
      expect(plain(back)).toEqual(
        plain({
          ...envelope,
          ...(envelope.kind === 'hint'
            ? {
                transactions: [
                  {
                    ...transaction,
                    record: Uint8Array.from(transaction.record),
                    payload: Uint8Array.from(transaction.payload),
                  },
                ],
              }
            : {}),
        }),
      );
    },
  );

  it('encodes a commit and its absence', () => {
    const there = toBinary(GetCommitResponseSchema, create(GetCommitResponseSchema, wireCommit(bundle)));
    expect(parseCommit(fromBinary(GetCommitResponseSchema, there))).toEqual(bundle);
    const none = toBinary(GetCommitResponseSchema, create(GetCommitResponseSchema, wireCommit(undefined)));
    expect(parseCommit(fromBinary(GetCommitResponseSchema, none))).toBeUndefined();
  });

  it('refuses fields out of bounds', () => {
    const wire = (change: (message: ReturnType<typeof wireEnvelope>) => unknown, at = 2) => {
      const envelope = envelopes[at];
      if (envelope === undefined) throw new Error('no such envelope');
      const message = create(StreamRequestSchema, wireEnvelope(envelope));
      change(message);
      return () => parseEnvelope(message);
    };
    const refused = expect.objectContaining({ code: 'INVALID_ENVELOPE' });
    const changes: [(message: never) => unknown, number?][] = [
      [(message: { registerId: string }) => Object.assign(message, { registerId: 'AB'.repeat(16) })],
      [(message: { registerId: string }) => Object.assign(message, { registerId: '' })],
      [(message: { message: unknown }) => Object.assign(message, { message: { case: undefined } })],
      [(message: { message: { value: object } }) => Object.assign(message.message.value, { type: 1 })],
      [
        (message: { message: { value: object } }) =>
          Object.assign(message.message.value, { height: 2n ** 60n }),
      ],
      [
        (message: { message: { value: object } }) =>
          Object.assign(message.message.value, { merkleRoot: new Uint8Array() }),
      ],
      [
        (message: { message: { value: object } }) =>
          Object.assign(message.message.value, { signature: new Uint8Array(63) }),
      ],
      [
        (message: { message: { value: object } }) =>
          Object.assign(message.message.value, { validatorId: 'a|b' }),
      ],
      [
        (message: { message: { value: object } }) =>
          Object.assign(message.message.value, { prevotes: Array(200).fill(1) }),
        5,
      ],
      [
        (message: { message: { value: object } }) =>
          Object.assign(message.message.value, { heads: Array(600).fill({}) }),
        7,
      ],
      [
        (message: { message: { value: { transactions: { payload: Uint8Array }[] } } }) =>
          Object.assign(message.message.value.transactions[0] ?? {}, { payload: new Uint8Array(200_000) }),
        8,
      ],
    ];
    for (const [change, at] of changes) expect(wire(change as never, at)).toThrow(refused);
  });

  it('turns any bytes into an envelope within bounds or a refusal', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        expect(outcome(bytes)).toBeDefined();
      }),
      { numRuns: 300 },
    );
  });

  it('does so for damaged messages too', () => {
    const samples = envelopes.map(bytesOf);
    fc.assert(
      fc.property(
        fc.constantFrom(...samples),
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 6 }),
        fc.nat(),
        (sample, changes, cut) => {
          const bytes = Uint8Array.from(sample);
          for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
          const found = outcome(cut % 3 === 0 ? bytes.subarray(0, cut % bytes.length) : bytes);
          if (typeof found === 'object') expect(outcome(bytesOf(found))).toEqual(found);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('accepts only records as records', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          parseRecords(fromBinary(GetRecordsResponseSchema, bytes));
          parseCommit(fromBinary(GetCommitResponseSchema, bytes));
        } catch (error) {
          if (isAppError(error) && error.code !== 'INVALID_ENVELOPE') throw error;
        }
      }),
      { numRuns: 300 },
    );
  });
});
