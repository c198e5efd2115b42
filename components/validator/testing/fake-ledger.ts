import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { AppError } from '#core/errors/errors.ts';
import { type ConsensusVote, verifyVote } from '#core/ledger/attestation.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import { readControlRecord, genesisState } from '../membership/genesis.ts';
import { judgeDocket } from '../building/judge.ts';
import { hasExclusiveSuccessor, type PooledTransaction } from '../pool/transaction.ts';
import type { Ledger, LookupAnswer, RegisterFacts, SealedDocket } from '../sealing/ports.ts';
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
      return questions.map(({ transactionId, previousTransactionId }): LookupAnswer => {
        const found = sealed.get(transactionId);
        const previous = sealed.get(previousTransactionId);
        return {
          sealedRecordHash: found === undefined ? '' : encodeHex(found.leaf),
          previousKnown: previous !== undefined,
          previousType: previous?.type ?? '',
          previousSuccessor: successors.get(previousTransactionId) ?? '',
        };
      });
    },
    async writeDocket({ docket, certificate }, attestation) {
      await ledger.before('write');
      const { header, transactions } = docket;
      const stored = dockets[header.docketNumber];
      if (stored !== undefined) {
        const outcome = stored.docket.header.hash === header.hash ? 'replayed' : 'divergent';
        return { outcome, height: dockets.length, refusals: [] };
      }
      if (header.docketNumber > dockets.length) return { outcome: 'out-of-order', height: dockets.length, refusals: [] };
      const [first] = transactions;
      const before = state ?? (first && genesisState(readControlRecord(first.payload), networkId));
      if (before === undefined) throw new AppError('internal', 'INTERNAL_ERROR', 'an empty docket');
      const violations = [
        ...judgeDocket(before, docket),
        ...verifyCertificate(certificate, {
          members: before.members,
          networkId,
          registerId: before.registerId,
          verifier,
          docket: header,
        }),
      ];
      const refusals = violations.map(({ code, message }) => `${code} ${message}`);
      for (const each of transactions) if (sealed.has(each.txId)) refusals.push(`sealed twice: ${each.txId}`);
      if (attestation !== undefined && !verifyVote(attestation, verifier)) refusals.push('attestation');
      if (refusals.length > 0) return { outcome: 'invalid', height: dockets.length, refusals };
      for (const each of transactions) {
        sealed.set(each.txId, each);
        const previous = each.previousTransactionId;
        const type = previous === undefined ? undefined : sealed.get(previous)?.type;
        if (previous === undefined || type === undefined || !hasExclusiveSuccessor(type)) continue;
        if (successors.has(previous)) refusals.push(`two successors of ${previous}`);
        successors.set(previous, each.txId);
      }
      if (refusals.length > 0) return { outcome: 'invalid', height: dockets.length, refusals };
      dockets.push({ docket, certificate });
      if (attestation !== undefined) ledger.attestations.push(attestation);
      state = applyDocket(before, header);
      await ledger.afterWrite();
      return { outcome: 'stored', height: dockets.length, refusals: [] };
    },
    async findRegister(registerId) {
      await ledger.before('find');
      return state?.registerId === registerId ? factsOf(state) : undefined;
    },
    async listMemberRegisters() {
      await ledger.before('list');
      return state === undefined ? [] : [state.registerId];
    },
  };
  return ledger;
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
