import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { AppError } from '#core/errors/errors.ts';
import { type ConsensusVote, verifyVote } from '#core/ledger/attestation.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import { judgeDocket } from '../building/judge.ts';
import { genesisState, readControlRecord } from '../membership/genesis.ts';
import { hasExclusiveSuccessor, type PooledTransaction } from '../pool/transaction.ts';
import type { Ledger, LookupAnswer, RegisterFacts, SealedDocket, WriteOutcome } from '../sealing/ports.ts';
import { applyDocket, type RegisterState } from '../sealing/state.ts';

export interface FakeLedger extends Ledger {
  readonly dockets: SealedDocket[];
  readonly attestations: ConsensusVote[];
  readonly sealed: ReadonlyMap<string, PooledTransaction>;
  lookups: number;
  /** Called before each call with its name; may throw or wait. */
  before: (call: 'lookup' | 'write' | 'find' | 'list') => Promise<void> | void;
  /** Called after a docket is stored and before that is answered. */
  afterWrite: () => Promise<void> | void;
}

const verifier = createVerifier(nodeEd25519());

/** A register service in memory for one register; it verifies every docket before it stores it. */
export function fakeLedger(networkId: string): FakeLedger {
  const dockets: SealedDocket[] = [];
  const sealed = new Map<string, PooledTransaction>();
  const successors = new Map<string, string>();
  const replays = new Map<string, string>();
  let state: RegisterState | undefined;
  const ledger: FakeLedger = {
    dockets,
    attestations: [],
    sealed,
    lookups: 0,
    before: () => {},
    afterWrite: () => {},
    async lookup(questions) {
      ledger.lookups += 1;
      await ledger.before('lookup');
      return questions.map(({ transactionId, previousTransactionId, replayKey }): LookupAnswer => {
        const found = sealed.get(transactionId);
        const previous = sealed.get(previousTransactionId);
        return {
          sealedRecordHash: found === undefined ? '' : encodeHex(found.leaf),
          previousKnown: previous !== undefined,
          previousType: previous?.type ?? '',
          previousSuccessor: successors.get(previousTransactionId) ?? '',
          sealedReplay: replays.get(replayKey) ?? '',
        };
      });
    },
    async writeDocket(offered, attestation) {
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
      const before = state ?? stateBeforeGenesis(offered, networkId);
      const refusals = [
        ...judge(offered, before),
        ...link(offered, sealed, successors),
        ...repeat(offered, replays),
      ];
      if (attestation !== undefined && !verifyVote(attestation, verifier)) refusals.push('attestation');
      if (refusals.length > 0) return answer('invalid', refusals);
      dockets.push(offered);
      if (attestation !== undefined) ledger.attestations.push(attestation);
      state = applyDocket(before, header);
      await ledger.afterWrite();
      return answer('stored');
    },
    async findRegister(registerId) {
      await ledger.before('find');
      return state?.registerId === registerId ? factsOf(state) : undefined;
    },
    async isSubscribed() {
      return true;
    },
    async listMemberRegisters() {
      await ledger.before('list');
      return state === undefined ? [] : [state.registerId];
    },
  };
  return ledger;
}

function stateBeforeGenesis({ docket }: SealedDocket, networkId: string): RegisterState {
  const [first] = docket.transactions;
  if (first === undefined) throw new AppError('internal', 'INTERNAL_ERROR', 'an empty docket');
  return genesisState(readControlRecord(first.payload), networkId);
}

function judge({ docket, certificate }: SealedDocket, before: RegisterState): string[] {
  const { members, networkId, registerId } = before;
  const context = { members, networkId, registerId, verifier, docket: docket.header };
  const violations = [...judgeDocket(before, docket), ...verifyCertificate(certificate, context)];
  return violations.map(({ code, message }) => `${code} ${message}`);
}

/** Takes the transactions in; what may not be is said. */
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

/** Takes the replay keys in; what repeats another transaction is said. */
function repeat({ docket }: SealedDocket, replays: Map<string, string>): string[] {
  const refusals: string[] = [];
  for (const { txId, replayKey } of docket.transactions) {
    if (replayKey === undefined) continue;
    if (replays.has(replayKey)) refusals.push(`repeated: ${replays.get(replayKey)}`);
    replays.set(replayKey, txId);
  }
  return refusals;
}

function factsOf(state: RegisterState): RegisterFacts {
  return {
    registerId: state.registerId,
    networkId: state.networkId,
    status: 'Online',
    height: state.height,
    headHash: state.headHash,
    headTimestamp: state.headTimestamp,
    logFrontier: state.log.serialise(),
    members: state.members,
    policy: state.policy,
    roster: [...state.rosterKeys].map((name) => {
      const [algorithm = '', publicKey = ''] = name.split(':');
      return { algorithm, publicKey };
    }),
  };
}
