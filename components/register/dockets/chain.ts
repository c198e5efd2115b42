import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { AppError } from '#core/errors/errors.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { Frontier } from '#core/ledger/merkle.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { loadChain, type Member, type Register, type RosterEntry } from '../registers/store.ts';
import type { ChainState } from './verify.ts';

const hashBytes = 32;

/** The frontier as it is stored: its hashes one after the other. */
export function frontierOf(register: Pick<Register, 'height' | 'logFrontier'>): Frontier {
  const { logFrontier, height } = register;
  const hashes: Uint8Array[] = [];
  for (let at = 0; at < logFrontier.length; at += hashBytes)
    hashes.push(logFrontier.subarray(at, at + hashBytes));
  return Frontier.parse(height, hashes);
}

/** A stored member as core knows it. */
export function memberOf(member: Member): ValidatorMember {
  const { algorithm } = member;
  if (!isAlgorithm(algorithm))
    throw new AppError('internal', 'INTERNAL_ERROR', 'A stored key has no algorithm.');
  return { validatorId: member.validatorId, publicKey: member.publicKey, algorithm };
}

export function chainStateOf(chain: {
  readonly register: Register;
  readonly members: readonly Member[];
  readonly roster: readonly RosterEntry[];
}): ChainState {
  const { register, members, roster } = chain;
  const { consensus } = parsePolicy(JSON.parse(register.policyText));
  return {
    registerNo: register.registerNo,
    registerId: register.registerId,
    networkId: register.networkId,
    height: register.height,
    head:
      register.height === 0
        ? undefined
        : { docketNumber: register.height - 1, hash: register.headHash, timestamp: register.headTimestamp },
    frontier: frontierOf(register),
    members: members.map(memberOf),
    signatureThresholdMin: consensus.signatureThresholdMin,
    requireBoundTxId: consensus.requireBoundTxId,
    limits: consensus,
    genesisTransactionId: register.genesisTransactionId,
    controlKeys: new Set([register.systemKey.publicKey, ...roster.map((entry) => entry.publicKey)]),
  };
}

export interface ChainCache {
  load(registerId: string, known: 'cached' | 'fresh'): Promise<ChainState | undefined>;
  /** Remembers the state after a docket that was just committed on top of `state`. */
  advance(state: ChainState, header: DocketHeader): void;
}

const keptRegisters = 1_000;

/**
 * States of registers that this process wrote last, so that the next docket costs no read. Only a hint: the commit
 * is gated on the head.
 */
export function createChainCache(db: Reader<RegisterSchema>): ChainCache {
  const states = new Map<string, ChainState>();

  function keep(state: ChainState): void {
    states.delete(state.registerId);
    states.set(state.registerId, state);
    const [oldest] = states.keys();
    if (states.size > keptRegisters && oldest !== undefined) states.delete(oldest);
  }

  return {
    async load(registerId, known) {
      const cached = known === 'cached' ? states.get(registerId) : undefined;
      if (cached !== undefined) return cached;
      const chain = await loadChain(db, registerId);
      if (chain === undefined) return undefined;
      const state = chainStateOf(chain);
      keep(state);
      return state;
    },
    advance(state, header) {
      const frontier = state.frontier.clone();
      frontier.append(logLeaf(header));
      const { docketNumber, hash, timestamp } = header;
      keep({ ...state, height: state.height + 1, head: { docketNumber, hash, timestamp }, frontier });
    },
  };
}
