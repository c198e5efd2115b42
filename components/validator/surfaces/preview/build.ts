import type { z } from 'zod';
import { walletAddress } from '#core/crypto/address.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { type AppError, violation } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import { inadmissibleTombstones } from '../../chain/sealing/eviction.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { notReady } from '../../chain/sealing/status.ts';
import { failure } from '../../errors.ts';
import { durationText } from './durations.ts';
import type { builtSchema } from './schemas.ts';

export interface BuildRequest {
  /** 0: as many as the policy allows */
  readonly maxTransactions: number;
  /** Address of a member; empty: this validator's address */
  readonly validatorAddress: string;
  readonly seal: boolean;
}

export interface BuiltDocket {
  /** Undefined when no waiting transaction may be sealed. */
  readonly header: DocketHeader | undefined;
  /** Number of transactions that waited. */
  readonly processed: number;
  /** Number of waiting transactions that can no longer be sealed. */
  readonly rejected: number;
  readonly buildMicros: number;
  readonly sealed: boolean;
}

/** The specification's upper bound of a vote. */
const maxSealMs = 30_000;

/**
 * Builds the docket that would be proposed now. Without `seal` this is a preview only. With `seal` the docket is proposed,
 * and the docket that the members seal is awaited and returned instead.
 * @throws AppError invalid when the address is not a member's, conflict NO_PENDING_TRANSACTIONS, unavailable
 * REGISTER_NOT_READY or QUORUM_UNAVAILABLE, timeout CONSENSUS_TIMEOUT
 */
export async function buildLocally(
  register: RegisterChain,
  order: BuildRequest,
  clock: Clock,
): Promise<BuiltDocket> {
  if (!register.isOpen) throw notReady(register.id, register.status);
  assertMember(register, order.validatorAddress);
  const counted = { processed: register.pool.size, rejected: countRejected(register, clock.nowMs()) };
  const most = order.maxTransactions || undefined;
  const since = clock.nowMicros();
  const docket = register.preview(most, order.validatorAddress || undefined);
  const buildMicros = Number(clock.nowMicros() - since);
  if (!order.seal) return { header: docket?.header, ...counted, buildMicros, sealed: false };
  return { header: await sealNow(register, most), ...counted, buildMicros, sealed: true };
}

/** Only register managers and services may trigger sealing. */
export function assertMaySeal(caller: Caller | undefined): void {
  if (caller?.kind === 'service' || decide('CanManageRegisters', caller) === 'allow') return;
  throw failure('FORBIDDEN', { message: 'Sealing a docket needs the permission to manage registers' });
}

async function sealNow(register: RegisterChain, most: number | undefined): Promise<DocketHeader> {
  const { outcome, header } = await register.seal(most, maxSealMs);
  if (header !== undefined) return header;
  if (outcome === 'nothing-pending') throw failure('NO_PENDING_TRANSACTIONS');
  if (outcome === 'not-running') {
    const later = { retryAfterSeconds: 1 };
    throw failure('QUORUM_UNAVAILABLE', later);
  }
  throw notSealedInTime();
}

/** @returns AppError timeout CONSENSUS_TIMEOUT */
export function notSealedInTime(): AppError {
  return failure('CONSENSUS_TIMEOUT');
}

function assertMember({ state }: RegisterChain, address: string): void {
  const isMember = state.members.some(
    ({ algorithm, publicKey }) => walletAddress(algorithm, parsePublicKey(algorithm, publicKey)) === address,
  );
  if (address === '' || isMember) return;
  const message = 'validatorWalletAddress is not the address of a validator of the register';
  throw failure('INVALID_REQUEST', {
    message,
    violations: [violation('INVALID_REQUEST', message, 'validatorWalletAddress')],
  });
}

/** Counts expired transactions and those that the register's rules no longer admit. */
function countRejected({ state, pool }: RegisterChain, nowMs: number): number {
  const gone = new Set(pool.expired(nowMs).map(({ txId }) => txId));
  for (const { txId } of inadmissibleTombstones(state, pool, nowMs)) gone.add(txId);
  return gone.size;
}

/** The answer of `POST /api/validation/dockets/build`. */
export function presentBuilt({
  header,
  processed,
  rejected,
  buildMicros,
  sealed,
}: BuiltDocket): ReadonlyDeep<z.output<typeof builtSchema>> {
  return {
    isSuccess: header !== undefined,
    docket: header === undefined ? null : presentDocket(header, sealed),
    metrics: {
      transactionsProcessed: processed,
      transactionsIncluded: header?.transactionIds.length ?? 0,
      transactionsRejected: rejected,
      buildDuration: durationText(buildMicros),
      docketSizeBytes: header?.sizeBytes ?? 0,
    },
  };
}

/** A docket in the shape of the specification, before or after it is sealed. */
function presentDocket(header: DocketHeader, sealed: boolean) {
  return {
    docketId: String(header.docketNumber),
    ...header,
    transactionCount: header.transactionIds.length,
    state: sealed ? ('Sealed' as const) : ('Init' as const),
    consensusState: sealed ? ('Achieved' as const) : ('Pending' as const),
  };
}
