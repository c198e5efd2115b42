import { walletAddress } from '#core/crypto/address.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { findTimestamp, TICKS_PER_MILLISECOND } from '#core/encoding/timestamp.ts';
import { isAppError, type Violation } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import { type DocketHead, judgeHeader, judgeSuccession } from '#core/ledger/docket.ts';
import { applyControls } from '#core/ledger/governance/apply.ts';
import { rulesJson } from '#core/ledger/governance/rules-json.ts';
import type { Pool } from '../pool/pool.ts';
import { judgeWorkflow } from '../pool/step.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { type Genesis, genesisConfigOf, genesisState } from '../state/genesis.ts';
import { controlsOf, type RegisterState } from '../state/state.ts';
import type { Docket } from './docket.ts';
import { contextOf, judgePolicies } from './overlay.ts';

/**
 * Judges a proposed docket against the state before it. The verdict is a function of docket and state alone, so that every
 * member reaches the same one. Transactions must already be verified and looked up.
 */
export function judgeDocket(state: RegisterState, { header, transactions }: Docket): Violation[] {
  const head: DocketHead | undefined =
    state.height === 0
      ? undefined
      : { docketNumber: state.height - 1, hash: state.headHash, timestamp: state.headTimestamp };
  const found = judgeSuccession(header, head);
  if (found.length > 0) return found;
  if (header.registerId !== state.registerId) return [validationViolation('VAL_CHAIN_002', 'registerId')];
  if (header.validatorSetHash !== state.membersHash)
    return [validationViolation('VAL_CERT_001', 'validatorSetHash')];
  const leaves = transactions.map((transaction) => transaction.leaf);
  return [
    ...judgeHeader(header, leaves, state.log),
    ...judgeUncovered(state, header, transactions),
    ...judgeLimits(state, header),
    ...judgeOrder(header, transactions),
    ...judgeReplays(transactions),
    ...(state.height === 0
      ? judgeGenesis(state, header, transactions)
      : judgeRules(state, header, transactions)),
  ];
}

/** Docket 0 holds exactly the genesis transaction that the register begins with, and the genesis configuration derived from it. */
function judgeGenesis(
  state: RegisterState,
  header: Docket['header'],
  [genesis, ...others]: Docket['transactions'],
): Violation[] {
  if (genesis?.type !== 'Genesis' || others.length > 0) {
    return [validationViolation('VAL_PERM_002', 'transactions', 'Docket 0 holds exactly the genesis')];
  }
  const begun = findGenesisState(state, genesis);
  const isSame =
    begun !== undefined &&
    rulesJson(begun.ledger) === rulesJson(state.ledger) &&
    header.genesisConfig === genesisConfigOf(genesis.payload, state.networkId);
  return isSame
    ? []
    : [validationViolation('VAL_PERM_002', 'genesisConfig', 'The register began with another genesis')];
}

function findGenesisState(state: RegisterState, genesis: Genesis): RegisterState | undefined {
  try {
    return genesisState(genesis, state.networkId, state.verifier);
  } catch (error) {
    if (isAppError(error, 'invalid') || isAppError(error, 'unprocessable')) return undefined;
    throw error;
  }
}

/** Judges the register's own rules: the policies for each transaction, the roster for control transactions. */
function judgeRules(
  state: RegisterState,
  { timestamp }: Docket['header'],
  transactions: Docket['transactions'],
): Violation[] {
  const found = transactions.flatMap((transaction) => judgePolicies(state, transaction));
  if (transactions.some((transaction) => transaction.type === 'Genesis')) {
    found.push(validationViolation('VAL_PERM_002', 'transactions'));
  }
  if (found.length > 0) return found;
  const fold = applyControls(state.ledger, controlsOf(transactions), contextOf(state, timestamp));
  return 'violations' in fold ? [...fold.violations] : [];
}

/**
 * Header fields that the docket hash does not cover, or not by itself, must follow from the rest. Members that hold the
 * same hash and roots then hold the same header, and the register service refuses no sealed docket.
 */
function judgeUncovered(
  { members }: RegisterState,
  { sizeBytes, validatorAddress }: Docket['header'],
  transactions: Docket['transactions'],
): Violation[] {
  const found: Violation[] = [];
  if (sizeBytes !== transactions.reduce((sum, { record }) => sum + record.length, 0)) {
    found.push(validationViolation('VAL_SIZE_001', 'sizeBytes', 'sizeBytes is not the sum of the records'));
  }
  const isMember = members.some(
    ({ algorithm, publicKey }) =>
      walletAddress(algorithm, parsePublicKey(algorithm, publicKey)) === validatorAddress,
  );
  if (!isMember) found.push(validationViolation('VAL_CERT_001', 'validatorAddress'));
  return found;
}

function judgeLimits(state: RegisterState, header: Docket['header']): Violation[] {
  const { maxTransactionsPerDocket, maxDocketBytes } = state.rules;
  const fits = header.transactionIds.length <= maxTransactionsPerDocket && header.sizeBytes <= maxDocketBytes;
  return fits
    ? []
    : [validationViolation('VAL_SIZE_001', 'sizeBytes', 'The docket is larger than the policy allows')];
}

/** Parents before children, at most one exclusive successor each, and no transaction expired at the docket's timestamp. */
function judgeOrder(header: Docket['header'], transactions: Docket['transactions']): Violation[] {
  const found: Violation[] = [];
  const atTicks = findTimestamp(header.timestamp) ?? 0n;
  const ids = new Set(header.transactionIds);
  const seen = new Set<string>();
  const followed = new Set<string>();
  for (const transaction of transactions) {
    const { txId, previousTransactionId: previous, exclusivePredecessor } = transaction;
    if (previous !== undefined && ids.has(previous) && !seen.has(previous)) {
      found.push(validationViolation('VAL_CHAIN_001', txId, 'The parent follows its child in the docket'));
    }
    if (previous !== undefined && exclusivePredecessor && followed.has(previous)) {
      found.push(validationViolation('VAL_CHAIN_FORK', txId));
    }
    if (previous !== undefined) followed.add(previous);
    if (header.docketNumber > 0 && BigInt(transaction.expiresAtMs) * TICKS_PER_MILLISECOND <= atTicks) {
      found.push(validationViolation('VAL_TIME_003', txId));
    }
    seen.add(txId);
  }
  return found;
}

/** No two Actions of a docket with the same replay key. */
function judgeReplays(transactions: Docket['transactions']): Violation[] {
  const seen = new Set<string>();
  return transactions.flatMap(({ txId, replayKey }) => {
    if (replayKey === undefined) return [];
    if (seen.has(replayKey)) return validationViolation('VAL_REPLAY_001', txId);
    seen.add(replayKey);
    return [];
  });
}

/** Judges a proposed docket with its steps. */
export function judgeProposal(
  state: RegisterState,
  docket: Docket,
  pool: Pick<Pool, 'findDecided'>,
): Violation[] {
  const found = judgeDocket(state, docket);
  return found.length > 0 ? found : judgeSteps(docket, (txId) => pool.findDecided(txId));
}

/**
 * Judges the steps of a proposed docket, and what follows one, at the docket's time. A docket that a quorum has decided is
 * not judged so again: what was looked up about its steps may be missing here, and must not halt the register.
 * @param find a decided transaction that is still in the pool
 */
export function judgeSteps(
  { header, transactions }: Docket,
  find: (txId: string) => PooledTransaction | undefined,
): Violation[] {
  const nowTicks = findTimestamp(header.timestamp) ?? 0n;
  const here = new Map<string, PooledTransaction>();
  return transactions.flatMap((transaction) => {
    const context = { nowTicks, find: (txId: string) => here.get(txId) ?? find(txId) };
    const found = judgeWorkflow(transaction, context);
    here.set(transaction.txId, transaction);
    return found;
  });
}

/** Proposer-based timestamps: whether a new proposal's timestamp is plausible on arrival. Genesis is exempt. */
export function isTimely(state: RegisterState, timestamp: string, nowMs: number): boolean {
  if (state.height === 0) return true;
  const ticks = findTimestamp(timestamp);
  if (ticks === undefined) return false;
  const ms = Number(ticks / TICKS_PER_MILLISECOND);
  const { precisionMs, messageDelayMs } = state.rules;
  return nowMs - messageDelayMs - precisionMs <= ms && ms <= nowMs + precisionMs;
}
