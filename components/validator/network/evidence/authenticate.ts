import { parsePublicKey } from '#core/crypto/public-key.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { decodeHex, encodeHex } from '#core/encoding/hex.ts';
import { isAppError } from '#core/errors/errors.ts';
import { signBytes } from '#core/ledger/consensus.ts';
import { docketHash } from '#core/ledger/docket.ts';
import { root } from '#core/ledger/merkle.ts';
import type { Message } from '../../chain/consensus/messages.ts';
import { signable, type Voters } from '../../chain/sealing/sign-bytes.ts';
import type { CommitBundle, ProposalEnvelope } from '../transport/transport.ts';

/** Whether the message is signed by the set member that it names, for this register and exactly this set. */
export function isAuthentic(state: Voters, message: Message, verifier: Verifier): boolean {
  const member = state.members.find(({ validatorId }) => validatorId === message.validatorId);
  if (member === undefined) return false;
  const timestamp = message.kind === 'proposal' ? message.value.timestamp : message.timestamp;
  return falseIfInvalid(() =>
    verifier.verify({
      algorithm: member.algorithm,
      publicKey: parsePublicKey(member.algorithm, member.publicKey),
      message: signBytes(signable(state, message, timestamp)),
      signature: decodeBase64Any(message.signature),
    }),
  );
}

/** Whether header and record hashes are those that the proposal's signature covers. */
export function hasProposedContent({
  registerId,
  proposal,
  header,
  recordHashes,
}: ProposalEnvelope): boolean {
  const { value, height } = proposal;
  return (
    header.registerId === registerId &&
    header.docketNumber === height &&
    header.hash === value.hash &&
    header.merkleRoot === value.merkleRoot &&
    header.logRoot === value.logRoot &&
    header.timestamp === value.timestamp &&
    isConsistent({ header, recordHashes })
  );
}

/** Whether hash and Merkle root of a header equal those recomputed from its contents. */
export function isConsistent({
  header,
  recordHashes,
}: Pick<CommitBundle, 'header' | 'recordHashes'>): boolean {
  if (recordHashes.length !== header.transactionIds.length) return false;
  return falseIfInvalid(
    () =>
      docketHash(header) === header.hash &&
      encodeHex(root(recordHashes.map((hash) => decodeHex(hash, 32)))) === header.merkleRoot,
  );
}

/** Malformed input counts as false. */
function falseIfInvalid(judge: () => boolean): boolean {
  try {
    return judge();
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}
