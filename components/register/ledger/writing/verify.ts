import { rememberedAddresses } from '#core/crypto/address.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { isAppError, type Violation } from '#core/errors/errors.ts';
import { type ValidationCodeName, validationViolation } from '#core/errors/validation-codes.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import { genesisConfigText } from '#core/ledger/control-record.ts';
import { type DocketHead, judgeHeader, judgeSuccession } from '#core/ledger/docket.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import type { Frontier } from '#core/ledger/merkle.ts';
import { parseRecord, recordLeaf, type SealedRecord } from '#core/ledger/record.ts';
import type { TransactionSignature } from '#core/ledger/transaction.ts';
import { judgeAttestations, judgeLimits, judgeSealing, judgeSize } from '#core/ledger/verification/chain.ts';
import { findControlRecord } from '#core/ledger/verification/genesis.ts';
import { judgePayload, judgeRecord } from '#core/ledger/verification/records.ts';
import type { RegisterStatus } from '../../registers/state/store.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import { judgeSteps, type PinnedWorkflows, type Predecessors } from './steps.ts';

/** The state that a docket is judged against: the register after its last docket. */
export interface ChainState {
  readonly registerNo: number;
  readonly registerId: string;
  readonly networkId: string;
  /** number of sealed dockets */
  readonly height: number;
  /** the key segment that is open */
  readonly segment: number;
  readonly head: DocketHead | undefined;
  readonly frontier: Frontier;
  /** V(height) */
  readonly members: readonly ValidatorMember[];
  readonly signatureThresholdMin: number;
  readonly requireBoundTxId: boolean;
  readonly limits: {
    readonly maxTransactionsPerDocket: number;
    readonly maxDocketBytes: number;
    readonly maxTransactionBytes: number;
  };
  readonly genesisTransactionId: string;
  readonly status: RegisterStatus;
  /** rules for control transactions; undefined before docket 0 */
  readonly rules: LedgerRules | undefined;
}

/** A docket with parsed records, the input of all later stages. */
export interface ReadDocket {
  readonly bundle: DocketBundle;
  readonly records: readonly SealedRecord[];
  readonly leaves: readonly Uint8Array[];
}

export interface SignatureCheck {
  readonly txId: string;
  readonly payloadHash: string;
  readonly signature: TransactionSignature;
}

/** Verifies transaction signatures in the given order; in production on the pool of kit/crypto. */
export type VerifySignatures = (checks: readonly SignatureCheck[]) => Promise<readonly boolean[]>;

type Stage = (docket: ReadDocket, state: ChainState) => Violation[];

/** Types whose transactions may have several successors and may follow each other freely. */
export function isControlClass(type: string): boolean {
  return type === 'Genesis' || type === 'Control';
}

function at(index: number, code: ValidationCodeName, member: string): Violation {
  return validationViolation(code, `transactions[${index}].${member}`);
}

/** Parses the records: canonical bytes, the register's id, the ids of the header in their order. */
export function readDocket(bundle: DocketBundle): ReadDocket | Violation[] {
  const { header, transactions } = bundle;
  if (transactions.length === 0 || transactions.length !== header.transactionIds.length) {
    return [
      validationViolation(
        'VAL_STRUCT_001',
        'transactions',
        'Every transaction of the docket must be present.',
      ),
    ];
  }
  const records: SealedRecord[] = [];
  const found: Violation[] = [];
  for (const [index, transaction] of transactions.entries()) {
    const record = readRecord(transaction.record);
    if (record === undefined) found.push(at(index, 'VAL_STRUCT_012', 'record'));
    else if (record.txId !== header.transactionIds[index])
      found.push(at(index, 'VAL_STRUCT_002', 'record.txId'));
    else if (record.registerId !== header.registerId)
      found.push(at(index, 'VAL_STRUCT_003', 'record.registerId'));
    else records.push(record);
  }
  if (found.length > 0) return found;
  return { bundle, records, leaves: transactions.map((one) => recordLeaf(one.record)) };
}

function readRecord(bytes: Uint8Array): SealedRecord | undefined {
  try {
    return parseRecord(bytes);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

const judgePosition: Stage = ({ bundle }, state) => judgeSuccession(bundle.header, state.head);

const judgeContent: Stage = ({ bundle, leaves }, state) => {
  const sizeBytes = bundle.transactions.reduce((sum, one) => sum + one.record.length, 0);
  return [...judgeHeader(bundle.header, leaves, state.frontier), ...judgeSize(bundle.header, sizeBytes)];
};

/** The size of the genesis record is bounded by the roster and the validator set only. */
const judgeSizes: Stage = ({ bundle }, { limits, height }) => {
  const { transactions, header } = bundle;
  const found = judgeLimits(header, limits);
  if (found.length > 0) return found;
  if (height === 0) return [];
  return transactions.flatMap((one, index) =>
    one.record.length > limits.maxTransactionBytes ? [at(index, 'VAL_SIZE_001', 'record')] : [],
  );
};

/** Docket 0 holds exactly the genesis transaction that this register was created with, and matches its facts. */
const judgeGenesis: Stage = ({ bundle, records }, state) => {
  if (bundle.header.docketNumber !== 0) return [];
  const [first] = records;
  if (records.length !== 1 || first?.txId !== state.genesisTransactionId || first.type !== 'Genesis') {
    return [
      validationViolation('VAL_PERM_002', 'transactions', 'Docket 0 holds exactly the genesis transaction.'),
    ];
  }
  const control = findControlRecord(bundle.transactions[0]?.payload ?? new Uint8Array());
  const expected = control === undefined ? undefined : genesisConfigText(control, state.networkId);
  return expected !== undefined && bundle.header.genesisConfig === expected
    ? []
    : [
        validationViolation(
          'VAL_PERM_002',
          'genesisConfig',
          'genesisConfig does not follow from the control record.',
        ),
      ];
};

const addressOf = rememberedAddresses(10_000);

/** The claims of a record must be true, and acceptable to the rules before the docket. */
const judgeRecords: Stage = ({ bundle, records }, state) => {
  const { docketNumber, timestamp } = bundle.header;
  const { requireBoundTxId } = state;
  const context = { docketNumber, timestamp, requireBoundTxId, addressOf };
  return records.flatMap((record, index) => {
    const { payload = new Uint8Array(), payloadHashForm } = bundle.transactions[index] ?? {};
    const found = judgePayload(record, payload);
    if (payloadHashForm !== 'jcs' && payloadHashForm !== 'compact') {
      found.push(validationViolation('VAL_STRUCT_007', 'payloadHashForm'));
    }
    return [...found, ...judgeRecord(record, payload, context)].map((one) => ({
      ...one,
      field: `transactions[${index}].${one.field}`,
    }));
  });
};

/** Predecessors are sealed or earlier in this docket; an Action has one successor. */
function judgeLinks(docket: ReadDocket, sealed: Predecessors): Violation[] {
  const types = new Map([...sealed].map(([id, { type }]) => [id, type]));
  const followed = new Set<string>();
  const found: Violation[] = [];
  for (const [index, record] of docket.records.entries()) {
    const previous = record.previousTransactionId;
    const type = previous === undefined ? undefined : types.get(previous);
    if (previous !== undefined && type === undefined) {
      found.push(at(index, 'VAL_CHAIN_001', 'record.previousTransactionId'));
    } else if (previous !== undefined && type !== undefined && !isControlClass(type)) {
      if (followed.has(previous)) found.push(at(index, 'VAL_CHAIN_FORK', 'record.previousTransactionId'));
      followed.add(previous);
    }
    types.set(record.txId, record.type);
  }
  return found;
}

async function judgeSignatures(docket: ReadDocket, verify: VerifySignatures): Promise<Violation[]> {
  const indexes: number[] = [];
  const checks = docket.records.flatMap((record, index) =>
    record.signatures.map((signature) => {
      indexes.push(index);
      return { txId: record.txId, payloadHash: record.payloadHash, signature };
    }),
  );
  const verdicts = await verify(checks);
  return indexes.flatMap((index, check) =>
    verdicts[check] === true ? [] : [at(index, 'VAL_SIG_002', 'record.signatures')],
  );
}

/** Predecessor ids that must be sealed: those that are not in the docket itself. */
export function predecessorsOf(docket: ReadDocket): string[] {
  const own = new Set(docket.records.map((record) => record.txId));
  const previous = docket.records.flatMap((record) => record.previousTransactionId ?? []);
  return [...new Set(previous)].filter((id) => !own.has(id));
}

export interface DocketJudges {
  readonly verifier: Verifier;
  readonly verifySignatures: VerifySignatures;
}

/**
 * Judges a docket completely against the register's state, the cheapest stage first. The result is the violations of
 * the first stage that finds any; an empty list means that the docket may be stored.
 */
export async function verifyDocket(
  docket: ReadDocket,
  state: ChainState,
  predecessors: Predecessors,
  judges: DocketJudges & { readonly workflows: PinnedWorkflows },
): Promise<Violation[]> {
  const ofHeader = firstFound([
    () => judgePosition(docket, state),
    () => judgeContent(docket, state),
    () => judgeSizes(docket, state),
    () => judgeSealing(docket.bundle, state, judges.verifier),
    () => judgeGenesis(docket, state),
  ]);
  if (ofHeader.length > 0) return ofHeader;
  // worker threads verify signatures while this one judges records, whose violations are reported first
  const [ofSignatures, ofRecords] = await Promise.all([
    judgeSignatures(docket, judges.verifySignatures),
    firstFound([
      () => judgeRecords(docket, state),
      () => judgeLinks(docket, predecessors),
      () =>
        judgeSteps(
          { records: docket.records, timestamp: docket.bundle.header.timestamp },
          predecessors,
          judges.workflows,
        ),
      () => judgeAttestations(docket.bundle, state.members, judges.verifier),
    ]),
  ]);
  return ofRecords.length > 0 ? ofRecords : ofSignatures;
}

function firstFound(stages: readonly (() => Violation[])[]): Violation[] {
  for (const stage of stages) {
    const found = stage();
    if (found.length > 0) return found;
  }
  return [];
}
