import { findPublication } from '#core/blueprint/publication.ts';
import { compileWorkflow } from '#core/blueprint/steps/workflow.ts';
import { createVerifier, nodeEd25519, type Verifier } from '#core/crypto/verify.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { AppError } from '#core/errors/errors.ts';
import { type ConsensusVote, verifyVote } from '#core/ledger/attestation.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import { parseRules, rulesJson } from '#core/ledger/governance/rules-json.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { judgeDocket, judgeSteps } from '../chain/building/judge.ts';
import type { KeyPart } from '../chain/keys/key-snapshot.ts';
import type { LookupAnswer, LookupQuery } from '../chain/keys/lookup.ts';
import { hasExclusiveSuccessor, type PooledTransaction } from '../chain/pool/transaction.ts';
import type { Ledger, RegisterFacts, SealedDocket, WriteOutcome } from '../chain/sealing/ports.ts';
import { genesisState } from '../chain/state/genesis.ts';
import { applyDocket, type RegisterState } from '../chain/state/state.ts';
import { keyParts } from './key-parts.ts';

export interface FakeLedger extends Ledger {
  readonly dockets: SealedDocket[];
  readonly attestations: ConsensusVote[];
  readonly sealed: ReadonlyMap<string, PooledTransaction>;
  /** The state after the last stored docket. */
  readonly state: RegisterState | undefined;
  lookups: number;
  /** Snapshots of keys. */
  keyReads: number;
  /** Called with the name of each call before it; may throw or wait. */
  before: (call: 'lookup' | 'write' | 'attest' | 'find' | 'list' | 'keys' | 'record') => Promise<void> | void;
  /** Returns to an older state, like a restored database. */
  restoreTo(height: number): Promise<void>;
  /** Called after a docket is stored and before the answer. */
  afterWrite: () => Promise<void> | void;
}

/** An in-memory register service for one register; it verifies every docket before it stores it. */
export function fakeLedger(
  networkId: string,
  verifier: Verifier = createVerifier(nodeEd25519()),
): FakeLedger {
  const dockets: SealedDocket[] = [];
  const sealed = new Map<string, PooledTransaction>();
  const successors = new Map<string, string>();
  const replays = new Map<string, string>();
  let state: RegisterState | undefined;
  let facts: RegisterFacts | undefined;
  const ledger: FakeLedger = {
    dockets,
    attestations: [],
    sealed,
    get state() {
      return state;
    },
    lookups: 0,
    keyReads: 0,
    before: () => {},
    afterWrite: () => {},
    async lookup(queries) {
      ledger.lookups += 1;
      await ledger.before('lookup');
      return queries.map((query) => answerOf(query, { sealed, successors, replays }));
    },
    async writeDocket(offered, attestations) {
      await ledger.before('write');
      const { header } = offered.docket;
      const answer = (outcome: WriteOutcome, refusals: string[] = []) => ({
        outcome,
        height: dockets.length,
        refusals,
      });
      const stored = dockets[header.docketNumber];
      if (stored !== undefined)
        return answer(stored.docket.header.hash === header.hash ? 'replayed' : 'divergent');
      if (header.docketNumber > dockets.length) return answer('out-of-order');
      const before = state ?? stateBeforeGenesis(offered, networkId, verifier);
      const refusals = refusalsOf(offered, before, verifier, { sealed, successors, replays });
      if (!attestations.every((vote) => verifyVote(vote, verifier))) refusals.push('attestation');
      if (refusals.length > 0) return answer('invalid', refusals);
      dockets.push(offered);
      ledger.attestations.push(...attestations);
      state = applyDocket(before, offered.docket);
      await ledger.afterWrite();
      return answer('stored');
    },
    async restoreTo(height) {
      const kept = dockets.slice(0, height);
      dockets.length = 0;
      sealed.clear();
      successors.clear();
      replays.clear();
      state = undefined;
      for (const each of kept) await ledger.writeDocket(each, []);
    },
    async appendAttestation(_registerId, docketNumber, vote) {
      await ledger.before('attest');
      const stored = dockets[docketNumber]?.docket.header.hash;
      if (stored !== vote.docketHash || !verifyVote(vote, verifier)) {
        throw new AppError('unprocessable', 'VAL_SIG_002', 'The attestation does not verify.');
      }
      addOnce(ledger.attestations, vote);
    },
    async findRegister(registerId) {
      await ledger.before('find');
      if (state?.registerId !== registerId) return undefined;
      if (facts?.height !== state.height || facts.headHash !== state.headHash)
        facts = factsOf(state, sealed.size);
      return facts;
    },
    findTransaction: (_registerId, txId) => findTransaction(ledger, txId),
    isSubscribed: async () => true,
    async listMemberRegisters() {
      await ledger.before('list');
      return state === undefined ? [] : [state.registerId];
    },
    readKeys: () => readKeys(ledger),
  };
  return ledger;
}

async function findTransaction(ledger: FakeLedger, txId: string) {
  await ledger.before('record');
  return ledger.sealed.get(txId);
}

async function* readKeys(ledger: FakeLedger): AsyncGenerator<KeyPart> {
  ledger.keyReads += 1;
  await ledger.before('keys');
  yield* keyParts(ledger.dockets);
}

interface Index {
  readonly sealed: ReadonlyMap<string, PooledTransaction>;
  /** The successor of a transaction, by id. */
  readonly successors: ReadonlyMap<string, string>;
  readonly replays: ReadonlyMap<string, string>;
}

function answerOf(query: LookupQuery, { sealed, successors, replays }: Index): LookupAnswer {
  const { transactionId, previousTransactionId, replayKey, pin } = query;
  const found = sealed.get(transactionId);
  const previous = sealed.get(previousTransactionId);
  return {
    sealedRecordHash: found === undefined ? '' : encodeHex(found.leaf),
    previousKnown: previous !== undefined,
    previousType: previous?.type ?? '',
    previousSuccessor: successors.get(previousTransactionId) ?? '',
    sealedReplay: replays.get(replayKey) ?? '',
    previousRouting: previous?.step?.routing ?? '',
    pinKnown: isPublication(sealed.get(pin)),
  };
}

function isPublication(transaction: PooledTransaction | undefined): boolean {
  if (transaction === undefined) return false;
  return findPublication(parseRecord(transaction.record), transaction.payload) !== undefined;
}

function addOnce(attestations: ConsensusVote[], vote: ConsensusVote): void {
  const isSame = (each: ConsensusVote) =>
    each.docketHash === vote.docketHash && each.validatorId === vote.validatorId;
  if (!attestations.some(isSame)) attestations.push(vote);
}

function stateBeforeGenesis({ docket }: SealedDocket, networkId: string, verifier: Verifier): RegisterState {
  const [first] = docket.transactions;
  if (first === undefined) throw new AppError('internal', 'INTERNAL_ERROR', 'an empty docket');
  return genesisState(first, networkId, verifier);
}

function judge({ docket, certificate }: SealedDocket, before: RegisterState, verifier: Verifier): string[] {
  const { members, networkId, registerId } = before;
  const context = { members, networkId, registerId, verifier, docket: docket.header };
  const violations = [...judgeDocket(before, docket), ...verifyCertificate(certificate, context)];
  return violations.map(({ code, message }) => `${code} ${message}`);
}

interface WritableIndex {
  readonly sealed: Map<string, PooledTransaction>;
  readonly successors: Map<string, string>;
  readonly replays: Map<string, string>;
}

/** Indexes the docket and returns the refusals. */
function refusalsOf(
  offered: SealedDocket,
  before: RegisterState,
  verifier: Verifier,
  { sealed, successors, replays }: WritableIndex,
): string[] {
  return [
    ...judge(offered, before, verifier),
    ...link(offered, sealed, successors),
    ...repeat(offered, replays),
    ...judgeSealedSteps(offered, before.height, sealed),
  ];
}

/** Indexes the transactions and returns the refusals. */
function link(
  { docket }: SealedDocket,
  sealed: Map<string, PooledTransaction>,
  successors: Map<string, string>,
): string[] {
  const refusals: string[] = [];
  for (const each of docket.transactions) {
    if (sealed.has(each.txId)) refusals.push(`sealed twice: ${each.txId}`);
    sealed.set(each.txId, each);
    const previous = each.previousTransactionId;
    if (previous === undefined) continue;
    const type = sealed.get(previous)?.type;
    if (type === undefined) refusals.push(`unknown predecessor: ${previous}`);
    else if (hasExclusiveSuccessor(type) && successors.has(previous))
      refusals.push(`second successor: ${previous}`);
    successors.set(previous, each.txId);
  }
  return refusals;
}

/** Indexes the replay keys and returns the refusals. */
function repeat({ docket }: SealedDocket, replays: Map<string, string>): string[] {
  const refusals: string[] = [];
  for (const { txId, replayKey } of docket.transactions) {
    if (replayKey === undefined) continue;
    if (replays.has(replayKey)) refusals.push(`repeated: ${replays.get(replayKey)}`);
    replays.set(replayKey, txId);
  }
  return refusals;
}

/** As the register service judges the steps of a docket: by what it has stored, not by what a validator looked up. */
function judgeSealedSteps(
  { docket }: SealedDocket,
  height: number,
  sealed: ReadonlyMap<string, PooledTransaction>,
): string[] {
  const own = new Map(docket.transactions.map((each) => [each.txId, each]));
  const transactions = docket.transactions.map((each) => {
    const { step } = each;
    if (step === undefined) return each;
    const publication = own.has(step.pin) ? undefined : sealed.get(step.pin);
    const isPinKnown = height > 0 && isPublication(publication);
    const definition = publication && JSON.parse(Buffer.from(publication.payload).toString()).definition;
    const workflow = isPinKnown ? compileWorkflow(definition) : undefined;
    return { ...each, step: { ...step, context: { workflow, isPinKnown, sealed: undefined } } };
  });
  const found = judgeSteps({ ...docket, transactions }, (txId) => sealed.get(txId));
  return found.map(({ code, message }) => `${code} ${message}`);
}

function factsOf(state: RegisterState, transactionCount: number): RegisterFacts {
  return {
    registerId: state.registerId,
    networkId: state.networkId,
    status: 'Online',
    transactionCount,
    height: state.height,
    headHash: state.headHash,
    headTimestamp: state.headTimestamp,
    logFrontier: state.log.serialise(),
    ledger: parseRules(JSON.parse(rulesJson(state.ledger))),
  };
}
