import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { AppError } from '#core/errors/errors.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { DocketHead, DocketHeader } from '#core/ledger/docket.ts';
import { activeMembers, type LedgerRules } from '#core/ledger/governance/rules.ts';
import { Frontier } from '#core/ledger/merkle.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import { type RulesDeps, readRules, replayRules } from '../../governance/rules/load.ts';
import { loadChain, type Member, type Register, type StoredChain } from '../../registers/state/store.ts';
import type { ChainState } from './verify.ts';

const hashBytes = 32;

/** Decodes the stored frontier: its hashes are concatenated. */
export function frontierOf(register: Pick<Register, 'height' | 'logFrontier'>): Frontier {
  const { logFrontier, height } = register;
  const hashes: Uint8Array[] = [];
  for (let at = 0; at < logFrontier.length; at += hashBytes)
    hashes.push(logFrontier.subarray(at, at + hashBytes));
  return Frontier.parse(height, hashes);
}

/** Converts a stored member to core's type. */
export function memberOf(member: Member): ValidatorMember {
  const { algorithm } = member;
  if (!isAlgorithm(algorithm))
    throw new AppError('internal', 'INTERNAL_ERROR', 'A stored key has no algorithm.');
  return { validatorId: member.validatorId, publicKey: member.publicKey, algorithm };
}

function headOf(register: Register): DocketHead | undefined {
  const { height, headHash: hash, headTimestamp: timestamp } = register;
  return height === 0 ? undefined : { docketNumber: height - 1, hash, timestamp };
}

/** The part of the rules that the judges need. */
function ruledBy(rules: LedgerRules) {
  const { consensus } = rules.policy;
  return {
    rules,
    members: activeMembers(rules),
    signatureThresholdMin: consensus.signatureThresholdMin,
    requireBoundTxId: consensus.requireBoundTxId,
    limits: consensus,
  };
}

/** Before docket 0 the rules are those of the creation. */
function createdWith(chain: StoredChain) {
  const { consensus } = parsePolicy(JSON.parse(chain.register.policyText));
  return {
    rules: undefined,
    members: chain.members.map(memberOf),
    signatureThresholdMin: consensus.signatureThresholdMin,
    requireBoundTxId: consensus.requireBoundTxId,
    limits: consensus,
  };
}

/** @param rules of the register after its last docket; undefined before docket 0 */
function chainStateOf(chain: StoredChain, rules: LedgerRules | undefined): ChainState {
  const { register } = chain;
  return {
    registerNo: register.registerNo,
    registerId: register.registerId,
    networkId: register.networkId,
    status: register.status,
    height: register.height,
    segment: register.segment,
    head: headOf(register),
    frontier: frontierOf(register),
    genesisTransactionId: register.genesisTransactionId,
    ...(rules === undefined ? createdWith(chain) : ruledBy(rules)),
  };
}

/** Loads the state of a register; builds the rules of a register that predates them. */
export async function loadState(deps: RulesDeps, registerId: string): Promise<ChainState | undefined> {
  const chain = await loadChain(deps.database.read, registerId);
  if (chain === undefined) return undefined;
  return chainStateOf(chain, await rulesOfChain(deps, chain));
}

/** The rules of a loaded register; undefined before docket 0. */
export async function rulesOfChain(deps: RulesDeps, chain: StoredChain): Promise<LedgerRules | undefined> {
  if (chain.rulesText !== undefined) return readRules(chain.rulesText);
  return chain.register.height === 0 ? undefined : replayRules(deps, chain.register);
}

/** The outcome of a docket: the rules after it, and the log that contains it. */
interface DocketEffect {
  readonly rules: LedgerRules;
  readonly frontier: Frontier;
}

/**
 * The state after a docket that follows `state`. The segment is unchanged: only the database knows when the next one
 * begins.
 */
export function stateAfter(
  state: ChainState,
  header: DocketHeader,
  { rules, frontier }: DocketEffect,
): ChainState {
  const { docketNumber, hash, timestamp } = header;
  const ruled = rules === state.rules ? {} : ruledBy(rules);
  return { ...state, ...ruled, height: docketNumber + 1, head: { docketNumber, hash, timestamp }, frontier };
}

interface ChainCache {
  load(registerId: string, known: 'cached' | 'fresh'): Promise<ChainState | undefined>;
  /** Caches the state of a register after a docket was committed. */
  keep(state: ChainState): void;
}

const keptRegisters = 1_000;

/**
 * Caches states of registers that this process wrote last, so that the next docket costs no read. Only a hint: the
 * commit is gated on the head.
 */
export function createChainCache(deps: RulesDeps): ChainCache {
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
      const state = await loadState(deps, registerId);
      if (state !== undefined) keep(state);
      return state;
    },
    keep,
  };
}
