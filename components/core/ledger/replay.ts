import { sha256Hex } from '../crypto/hash.ts';
import type { TransactionType } from './transaction.ts';

const domain = 'platform:replay:v1\n';

/** 128 bits. A collision only refuses the transaction of the sender that searched for it. */
const keyCharacters = 32;

export interface ReplayFacts {
  readonly type: TransactionType;
  readonly senderAddress: string;
  readonly payloadHash: string;
  readonly previousTransactionId?: string | undefined;
}

/**
 * Replay key of an Action: sender, payload hash and predecessor. Undefined for other types, which may repeat. The
 * register's index and the pools of its validators compare it for Actions without predecessor or whose predecessor may
 * have many successors; an only successor is unique already.
 * @returns the first 16 bytes of SHA-256 over `platform:replay:v1\n{sender}\n{payloadHash}\n{predecessor}` as hex
 */
export function findReplayKey(facts: ReplayFacts): string | undefined {
  if (facts.type !== 'Action') return undefined;
  const { senderAddress, payloadHash, previousTransactionId = '' } = facts;
  const digest = sha256Hex(`${domain}${senderAddress}\n${payloadHash}\n${previousTransactionId}`);
  return digest.slice(0, keyCharacters);
}
