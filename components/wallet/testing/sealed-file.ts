import { createHash, createPublicKey, randomBytes, randomUUID } from 'node:crypto';
import { GeneralEncrypt } from 'jose';
import { fileChunks } from '#core/blueprint/payload/files.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { buildRecord, recordBytes } from '#core/ledger/record.ts';

const X25519_SPKI = Buffer.from('302a300506032b656e032100', 'hex');

const ids = { blueprintId: 'permit', actionId: '1', instanceId: 'f'.repeat(32) } as const;

/** A recipient of a group: key id, key type of the wallet, and its key for encryption in base64. */
export interface Reader {
  readonly kid: string;
  readonly keyType: string;
  readonly publicKey: string;
}

interface MadeFile {
  /** The FileReference. */
  readonly reference: Record<string, unknown>;
  readonly chunks: ReadonlyMap<string, Buffer>;
}

/**
 * Encrypts a file in chunks, as an app that uploads it does. Members of `change` replace those of the reference after
 * that; `claimed` is the hash that the app claims for the file.
 */
export function makeFile(
  registerId: string,
  parts: readonly Buffer[],
  change: object = {},
  claimed?: string,
): MadeFile {
  const content = Buffer.concat(parts);
  const owner = {
    uploadId: randomUUID(),
    hash: claimed ?? `sha256:${createHash('sha256').update(content).digest('hex')}`,
    salt: randomBytes(32),
    fileKey: randomBytes(32),
    chunkTransactionIds: parts.map(() => ''),
  };
  const chunks = parts.map((bytes, index) => {
    const sealed = fileChunks.seal(owner, index, { nonce: randomBytes(24), bytes });
    return [fileChunks.id({ registerId, uploadId: owner.uploadId, index }, sealed), sealed] as const;
  });
  const reference = {
    fileName: 'plan.pdf',
    contentType: 'application/pdf',
    size: content.length,
    ...owner,
    salt: owner.salt.toString('base64'),
    fileKey: owner.fileKey.toString('base64'),
    chunkTransactionIds: chunks.map(([id]) => id),
    ...change,
  };
  return { reference, chunks: new Map(chunks) };
}

interface Action {
  readonly registerId: string;
  readonly groups: readonly { readonly readers: readonly Reader[]; readonly data: object }[];
  /** Replaces the additional data of the groups. */
  readonly aad?: string;
  /** Replaces members of the protected header. */
  readonly header?: object;
}

/** A sealed action whose data is encrypted by another library, with its record. */
export async function sealAction({ registerId, groups, aad, header }: Action) {
  const encrypted = await Promise.all(
    groups.map(async ({ readers, data }, position) => {
      const groupId = `group-${position}`;
      const plaintext = canonicalBytes({ salt: randomBytes(32).toString('base64url'), fields: [], data });
      const place = aad ?? [registerId, ids.instanceId, ids.actionId, groupId].join('|');
      const encrypt = new GeneralEncrypt(plaintext)
        .setProtectedHeader({ enc: 'A256GCM', typ: 'disclosure-group+jwe', ...header })
        .setAdditionalAuthenticatedData(Buffer.from(place));
      for (const { kid, keyType, publicKey } of readers) {
        const bytes = Buffer.from(publicKey, 'base64');
        const key = keyType === 'ED25519' ? Buffer.concat([X25519_SPKI, bytes]) : bytes;
        const alg = keyType === 'RSA' ? 'RSA-OAEP-256' : 'ECDH-ES+A256KW';
        encrypt
          .addRecipient(createPublicKey({ key, format: 'der', type: 'spki' }))
          .setUnprotectedHeader({ alg, kid });
      }
      return { groupId, commitment: `sha256:${sha256Hex(plaintext)}`, jwe: await encrypt.encrypt() };
    }),
  );
  const payload = canonicalBytes({
    v: 1,
    type: 'action',
    contentEncoding: 'jwe-groups',
    ...ids,
    blueprintDefinitionTxId: 'a'.repeat(64),
    groups: encrypted,
  });
  return sealPayload(registerId, payload, {});
}

/** The sender and the recipients of a transaction. */
interface Parties {
  readonly senderAddress?: string;
  readonly recipients?: readonly string[];
}

/** A sealed action of a register in development mode, whose data is not encrypted, with its record. */
export function sealPlainAction(registerId: string, data: object, parties: Parties, change: object = {}) {
  const payload = canonicalBytes({
    v: 1,
    type: 'action',
    contentEncoding: 'identity',
    ...ids,
    data,
    ...change,
  });
  return sealPayload(registerId, payload, parties);
}

function sealPayload(
  registerId: string,
  payload: Uint8Array,
  { senderAddress = 'w1sender', recipients = [] }: Parties,
) {
  const txId = randomBytes(32).toString('hex');
  const record = buildRecord({
    envelope: {
      registerId,
      blueprintId: ids.blueprintId,
      actionId: ids.actionId,
      type: 'Action',
      payloadHash: sha256Hex(payload),
      recipients,
      createdAt: '2026-11-25T18:00:00.0000000+00:00',
    },
    txId,
    payloadSize: payload.length,
    senderAddress,
    signatures: [{ publicKey: 'AA==', signatureValue: 'AA==', algorithm: 'ED25519' }],
    bound: true,
  });
  return { txId, record: recordBytes(record), payload };
}
