import { buildPublication, PUBLISH_ACTION } from '#core/blueprint/publication.ts';
import { type Turn, turnOf } from '#core/blueprint/testing/turns.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { payloadHash, signingDigest } from '#core/ledger/transaction.ts';
import type { TestKey } from './keys.ts';
import { type Draft, type SignedSubmission, signedSubmission } from './submissions.ts';

/** The submission that publishes a definition, signed by the installation. */
export function publicationOf(
  registerId: string,
  definition: { readonly id: string },
  key: TestKey,
): SignedSubmission {
  const { txId, payload, metadata, blueprintId } = buildPublication(
    registerId,
    definition,
    'did:platform:w:x',
  );
  const signature = encodeBase64(key.sign(signingDigest(txId, payloadHash(payload))));
  const signatures = [{ PublicKey: key.publicKey, SignatureValue: signature, Algorithm: 'ED25519' }];
  const draft = { registerId, key, blueprintId, actionId: PUBLISH_ACTION, payload, metadata };
  const tamper = { TransactionId: txId, Signatures: signatures, Payload: payload };
  return { txId, text: signedSubmission({ ...draft, createdAtMs: Date.now(), tamper }).text };
}

/** The submission of a step of the definition `turns`. */
export function turnSubmission(
  turn: Turn,
  draft: Pick<Draft, 'registerId' | 'key' | 'previous'> & Partial<Draft>,
): SignedSubmission {
  const { blueprintId, actionId, metadata } = turnOf(turn);
  return signedSubmission({
    createdAtMs: Date.now(),
    payload: { n: turn.seq, instance: turn.instanceId },
    blueprintId,
    actionId,
    ...draft,
    metadata: { ...metadata, ...draft.metadata },
  });
}
