import { createHash, createPublicKey, randomBytes } from 'node:crypto';
import { GeneralEncrypt } from 'jose';
import { canonicalBytes } from '#core/encoding/jcs.ts';

/** A P-256 key for encryption, as the wallet service shows it, and its id. */
interface Reader {
  readonly kid: string;
  /** base64 of the SubjectPublicKeyInfo */
  readonly publicKey: string;
}

/** The payload of an action whose data is encrypted for one reader by another library. */
export async function encryptedPayload(registerId: string, { kid, publicKey }: Reader, data: object) {
  const [instanceId, actionId, groupId] = [randomBytes(16).toString('hex'), '1', 'group'];
  const plaintext = canonicalBytes({ salt: randomBytes(32).toString('base64url'), fields: [], data });
  const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' });
  const jwe = await new GeneralEncrypt(plaintext)
    .setProtectedHeader({ enc: 'A256GCM', typ: 'disclosure-group+jwe' })
    .setAdditionalAuthenticatedData(Buffer.from([registerId, instanceId, actionId, groupId].join('|')))
    .addRecipient(key)
    .setUnprotectedHeader({ alg: 'ECDH-ES+A256KW', kid })
    .encrypt();
  const commitment = `sha256:${createHash('sha256').update(plaintext).digest('hex')}`;
  return {
    v: 1,
    type: 'action',
    contentEncoding: 'jwe-groups',
    blueprintId: 'demo',
    actionId,
    instanceId,
    groups: [{ groupId, commitment, jwe }],
  };
}

/** A reference to a file of ten bytes that no service holds. */
export function fileReference() {
  return {
    fileName: 'plan.pdf',
    contentType: 'application/pdf',
    size: 10,
    hash: `sha256:${'0'.repeat(64)}`,
    salt: randomBytes(32).toString('base64'),
    uploadId: crypto.randomUUID(),
    chunkTransactionIds: ['0'.repeat(64)],
    fileKey: randomBytes(32).toString('base64'),
  };
}
