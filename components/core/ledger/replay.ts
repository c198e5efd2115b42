import { sha256Hex } from '../crypto/hash.ts';
import type { TransactionType } from './transaction.ts';

const domain = 'platform:replay:v1\n';

/** 128 bits: who searches for two keys that are alike finds a refusal of their own transaction. */
const keyCharacters = 32;

export interface ReplayFacts {
  readonly type: TransactionType;
  readonly senderAddress: string;
  readonly payloadHash: string;
  readonly previousTransactionId?: string | undefined;
}

/**
 * What two Actions of one register may not have in common: sender, payload hash and predecessor.
 * Undefined for other types, which may repeat themselves. The register's index and its validators' pools compare it, for
 * Actions whose predecessor may have many successors or that have none; one that is an only successor is unique already.
 * @returns the first 16 bytes of SHA-256 over `platform:replay:v1\n{sender}\n{payloadHash}\n{predecessor}` as hex
 */
export function findReplayKey(facts: ReplayFacts): string | undefined {
  if (facts.type !== 'Action') return undefined;
  const { senderAddress, payloadHash, previousTransactionId = '' } = facts;
  const digest = sha256Hex(`${domain}${senderAddress}\n${payloadHash}\n${previousTransactionId}`);
  return digest.slice(0, keyCharacters);
}
