import { isWalletAddress, type WalletAddress } from '../crypto/address.ts';
import { findRegisterId, findTxId, type RegisterId, type TxId } from './register-id.ts';

const MEMBER = 'did:platform:w:';
const ORGANISATION = 'did:platform:org:';
const REGISTER = 'did:platform:register:';

/** `did:platform:register:{registerId}/tx:{txId}` (specification document 2, section 2). */
export function transactionDid(registerId: string, txId: string): string {
  return `${REGISTER}${registerId}/tx:${txId}`;
}

/** `did:platform:w:{address}`: a member of a roster. */
export function memberDid(address: string): string {
  return MEMBER + address;
}

/** `did:platform:org:{address}`. */
export function organisationDid(address: string): string {
  return ORGANISATION + address;
}

/** The address of a member DID; undefined for any other text. */
export function findMemberAddress(did: string): WalletAddress | undefined {
  if (!did.startsWith(MEMBER)) return undefined;
  const address = did.slice(MEMBER.length);
  return isWalletAddress(address) ? address : undefined;
}

/** Register and transaction of a transaction DID; undefined for any other text. */
export function findTransactionDid(did: string): { registerId: RegisterId; txId: TxId } | undefined {
  const match = /^did:platform:register:([0-9a-f]{32})\/tx:([0-9a-f]{64})$/.exec(did);
  const registerId = findRegisterId(match?.[1] ?? '');
  const txId = findTxId(match?.[2] ?? '');
  return registerId === undefined || txId === undefined ? undefined : { registerId, txId };
}
