import { sign } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { z } from 'zod';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { decodeHex, encodeHex } from '#core/encoding/hex.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import {
  CONSENSUS_TYPES,
  signBytes,
  type ValidatorMember,
  validatorSetHash,
} from '#core/ledger/consensus.ts';
import { buildHeader, type DocketHeader } from '#core/ledger/docket.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { Frontier } from '#core/ledger/merkle.ts';
import { parseRecord, recordLeaf } from '#core/ledger/record.ts';
import type { ProposalMessage, StreamRequestSchema } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import type { Api } from '../harness/api.ts';
import { fetchDockets } from '../harness/evidence.ts';
import type { OutsideKey } from '../harness/outside.ts';

/** What one validator says to another, as it travels. */
export type Said = NonNullable<MessageInitShape<typeof StreamRequestSchema>['message']>;

/** What a member must know of a register to sign for its next docket. */
export interface View {
  readonly registerId: string;
  readonly networkId: string;
  readonly members: readonly ValidatorMember[];
  readonly setHash: string;
  /** The docket that is decided next. */
  readonly height: number;
  readonly headHash: string;
  readonly headTimestamp: string;
  readonly log: Frontier;
}

const listed = z.object({
  validators: z.array(
    z.object({ validatorId: z.string(), publicKey: z.string(), algorithm: z.string(), status: z.string() }),
  ),
});
const networked = z.object({ networkId: z.string() });

/** A register as its public interface shows it. */
export async function lookAt(api: Api, token: string, registerId: string): Promise<View> {
  const dockets = await fetchDockets(api, token, `/api/registers/${registerId}`);
  const answer = await api.expect(200, 'GET', `/api/validators/${registerId}`, { token });
  const members = listed
    .parse(answer.body)
    .validators.filter(({ status }) => status === 'active')
    .flatMap(({ validatorId, publicKey, algorithm }): ValidatorMember[] =>
      isAlgorithm(algorithm) ? [{ validatorId, publicKey, algorithm }] : [],
    );
  const [genesis, head] = [dockets[0], dockets.at(-1)];
  if (genesis === undefined || head === undefined) throw new Error('the register has not begun');
  const log = Frontier.empty();
  for (const each of dockets) log.append(logLeaf(each));
  return {
    registerId,
    networkId: networked.parse(JSON.parse(genesis.genesisConfig ?? '{}')).networkId,
    members,
    setHash: validatorSetHash(members),
    height: dockets.length,
    headHash: head.hash,
    headTimestamp: head.timestamp,
    log,
  };
}

const signatures = z.array(z.object({ validatorId: z.string() }));
const stored = z.object({ hash: z.string(), certificate: z.object({ round: z.number(), signatures }) });

/** The one docket of a height that the register service has, and who signed its certificate. */
export async function docketAt(api: Api, token: string, registerId: string, height: number) {
  const path = `/api/registers/${registerId}/dockets/${height}`;
  const { hash, certificate } = stored.parse((await api.expect(200, 'GET', path, { token })).body);
  const signers = certificate.signatures.map(({ validatorId }) => validatorId);
  return { hash, round: certificate.round, signers };
}

/** What proposals and votes name. */
export type Value = Pick<DocketHeader, 'hash' | 'merkleRoot' | 'logRoot' | 'timestamp'>;

/** A docket that may be proposed. */
export interface Draft {
  readonly header: DocketHeader;
  readonly leaves: readonly Uint8Array[];
}

/** Now, or so many milliseconds later, as a ledger's timestamp. */
export function ledgerTime(laterMs = 0): string {
  return formatLedgerTimestamp(BigInt(Date.now() + laterMs) * 1000n);
}

/** The next docket of a register over some records, with whatever timestamp; everything else about it is right. */
export function draftDocket(
  view: View,
  validatorAddress: string,
  records: readonly Uint8Array[],
  timestamp: string,
): Draft {
  const leaves = records.map(recordLeaf);
  const header = buildHeader(
    {
      registerId: view.registerId,
      docketNumber: view.height,
      previousHash: view.headHash,
      timestamp,
      validatorAddress,
      transactionIds: records.map((record) => parseRecord(record).txId),
      validatorSetHash: view.setHash,
      sizeBytes: records.reduce((sum, record) => sum + record.length, 0),
    },
    leaves,
    view.log,
  );
  return { header, leaves };
}

/** Where a vote or a proposal counts; whoever lies may sign for any place. */
export interface Place {
  readonly round: number;
  readonly height?: number;
}

/** Signs whatever it is told to, with a key that no signing service guards. */
export class Pen {
  readonly #validatorId: string;
  readonly #key: OutsideKey;

  constructor(validatorId: string, key: OutsideKey) {
    this.#validatorId = validatorId;
    this.#key = key;
  }

  proposal(view: View, { header, leaves }: Draft, place: Place): Said {
    const { height = view.height, round } = place;
    const { timestamp } = header;
    const signature = this.#sign(view, 'proposal', { height, round, value: header, timestamp });
    return {
      case: 'proposal',
      value: {
        proposal: {
          ...{ height: BigInt(height), round, polRound: -1, timestamp, signature },
          ...{ ...rootsOf(header), validatorId: this.#validatorId },
        },
        header: {
          ...header,
          transactionIds: [...header.transactionIds],
          docketNumber: BigInt(header.docketNumber),
          genesisConfig: '',
          sizeBytes: BigInt(header.sizeBytes),
        },
        recordHashes: [...leaves],
      },
    };
  }

  /** A vote; for nothing when the value is undefined. */
  vote(view: View, kind: 'prevote' | 'precommit', value: Value | undefined, place: Place): Said {
    const { height = view.height, round } = place;
    const timestamp = value?.timestamp ?? ledgerTime();
    const signature = this.#sign(view, kind, { height, round, value, timestamp });
    const named = value === undefined ? {} : rootsOf(value);
    return {
      case: 'vote',
      value: {
        ...{ type: CONSENSUS_TYPES[kind], height: BigInt(height), round, ...named },
        ...{ timestamp, validatorId: this.#validatorId, signature },
      },
    };
  }

  /** What an honest member says to a proposal that it likes, all at once. */
  approval(view: View, value: Value, place: Place): readonly Said[] {
    return [this.vote(view, 'prevote', value, place), this.vote(view, 'precommit', value, place)];
  }

  #sign(view: View, kind: keyof typeof CONSENSUS_TYPES, facts: Signed): Uint8Array {
    const { height, round, value, timestamp } = facts;
    const message = signBytes({
      type: CONSENSUS_TYPES[kind],
      networkId: view.networkId,
      registerId: view.registerId,
      height,
      round,
      polRound: -1,
      docket: value && { docketHash: value.hash, merkleRoot: value.merkleRoot, logRoot: value.logRoot },
      validatorSetHash: view.setHash,
      timestamp,
    });
    return sign(null, message, this.#key.privateKey);
  }
}

interface Signed {
  readonly height: number;
  readonly round: number;
  readonly value: Omit<Value, 'timestamp'> | undefined;
  readonly timestamp: string;
}

function rootsOf({ hash, merkleRoot, logRoot }: Omit<Value, 'timestamp'>) {
  return {
    docketHash: decodeHex(hash, 32),
    merkleRoot: decodeHex(merkleRoot, 32),
    logRoot: decodeHex(logRoot, 32),
  };
}

/** A docket that nobody proposed. */
export function madeUp(byte: number): Value {
  const hash = byte.toString(16).padStart(2, '0').repeat(32);
  return { hash, merkleRoot: hash, logRoot: hash, timestamp: ledgerTime() };
}

/** What a proposal that came from another validator is about. */
export function proposed({
  proposal,
}: ProposalMessage): Value & { readonly height: number; readonly round: number } {
  if (proposal === undefined) throw new Error('a proposal without its value');
  return {
    hash: encodeHex(proposal.docketHash),
    merkleRoot: encodeHex(proposal.merkleRoot),
    logRoot: encodeHex(proposal.logRoot),
    timestamp: proposal.timestamp,
    height: Number(proposal.height),
    round: proposal.round,
  };
}
