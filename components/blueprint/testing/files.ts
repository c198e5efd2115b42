import { randomBytes, randomUUID } from 'node:crypto';
import { fileChunks } from '#core/blueprint/payload/files.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';

interface Place {
  readonly registerId: string;
  readonly senderWallet: string;
}

/** Encrypts a file in chunks, as an app does: the bodies of its uploads, and the reference to it. */
export function makeFile({ registerId, senderWallet }: Place, parts: readonly Buffer[], change: object = {}) {
  const content = Buffer.concat(parts);
  const secrets = {
    uploadId: randomUUID(),
    hash: `sha256:${sha256Hex(content)}`,
    salt: randomBytes(32),
    fileKey: randomBytes(32),
  };
  const owner = { ...secrets, chunkTransactionIds: parts.map(() => '') };
  const { uploadId, hash } = owner;
  const described = {
    registerAddress: registerId,
    senderWallet,
    fileName: 'plan.pdf',
    contentType: 'application/pdf',
    fileSize: content.length,
    fileHash: hash,
  };
  const sealed = parts.map((bytes, index) => {
    const chunk = fileChunks.seal(owner, index, { nonce: randomBytes(24), bytes });
    const body = {
      uploadId,
      chunkIndex: index,
      totalChunks: parts.length,
      encryptedData: encodeBase64(chunk),
      checksum: `sha256:${sha256Hex(chunk)}`,
      ...(index === 0 && described),
    };
    return { chunk, body, id: fileChunks.id({ registerId, uploadId, index }, chunk) };
  });
  const reference = {
    fileName: described.fileName,
    contentType: described.contentType,
    size: content.length,
    hash,
    salt: encodeBase64(owner.salt),
    uploadId,
    chunkTransactionIds: sealed.map(({ id }) => id),
    fileKey: encodeBase64(owner.fileKey),
    ...change,
  };
  return { content, reference, chunks: sealed };
}

export type MadeFile = ReturnType<typeof makeFile>;
