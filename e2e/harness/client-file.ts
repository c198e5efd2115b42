import { createCipheriv, createHash, hkdfSync, randomBytes, randomUUID } from 'node:crypto';

/** What a client says of a file with its first chunk. */
interface Upload {
  readonly registerId: string;
  readonly senderWallet: string;
  readonly fileName: string;
  readonly contentType: string;
}

/** The words that ChaCha20 begins its state with: "expand 32-byte k" (RFC 8439, section 2.3). */
const constants = Buffer.from('expand 32-byte k');
const wordBytes = 4;

const hash = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/**
 * HChaCha20 (draft-irtf-cfrg-xchacha-03, section 2.2) by the ChaCha20 of OpenSSL: a block of its key stream is the state
 * after the rounds plus the state before them, so the rounds are that block minus the first and the last four words.
 */
function subkey(key: Uint8Array, input: Buffer): Buffer {
  const block = createCipheriv('chacha20', key, input).update(Buffer.alloc(64));
  const minus = (at: number, before: Buffer): Buffer => {
    const words = Buffer.alloc(before.length);
    for (let offset = 0; offset < before.length; offset += wordBytes)
      words.writeUInt32LE((block.readUInt32LE(at + offset) - before.readUInt32LE(offset)) >>> 0, offset);
    return words;
  };
  return Buffer.concat([minus(0, constants), minus(48, input)]);
}

/** XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03, section 2.3): nonce, ciphertext and tag in one piece. */
function sealBytes(key: Uint8Array, aad: Uint8Array, bytes: Uint8Array): Buffer {
  const nonce = randomBytes(24);
  const shortNonce = Buffer.concat([Buffer.alloc(4), nonce.subarray(16)]);
  const cipher = createCipheriv('chacha20-poly1305', subkey(key, nonce.subarray(0, 16)), shortNonce, {
    authTagLength: 16,
  });
  cipher.setAAD(aad, { plaintextLength: bytes.length });
  const sealed = cipher.update(bytes);
  return Buffer.concat([nonce, sealed, cipher.final(), cipher.getAuthTag()]);
}

/**
 * Encrypts a file in equal chunks as a client in any language does, by OpenSSL alone.
 *
 * @returns the bodies of `POST /api/file-chunks`, and the reference without the ids of the chunks, which are answered
 */
export function encryptFile(content: Buffer, chunkCount: number, upload: Upload) {
  const uploadId = randomUUID();
  const fileHash = hash(content);
  const [fileKey, salt] = [randomBytes(32), randomBytes(32)];
  const { registerId, senderWallet, fileName, contentType } = upload;
  const described = {
    registerAddress: registerId,
    senderWallet,
    fileName,
    contentType,
    fileSize: content.length,
    fileHash,
  };
  const chunkBytes = Math.ceil(content.length / chunkCount);
  const bodies = Array.from({ length: chunkCount }, (_, index) => {
    const position = Buffer.alloc(8);
    position.writeUInt32BE(index, 0);
    position.writeUInt32BE(chunkCount, 4);
    const info = Buffer.concat([Buffer.from('platform:file-chunk:v1'), position]);
    const key = new Uint8Array(hkdfSync('sha256', fileKey, salt, info, 32));
    const aad = Buffer.from([uploadId, index, chunkCount, fileHash].join('|'));
    const plain = content.subarray(index * chunkBytes, (index + 1) * chunkBytes);
    const sealed = sealBytes(key, aad, plain);
    return {
      uploadId,
      chunkIndex: index,
      totalChunks: chunkCount,
      encryptedData: sealed.toString('base64'),
      checksum: hash(sealed),
      ...(index === 0 && described),
    };
  });
  const reference = {
    fileName,
    contentType,
    size: content.length,
    hash: fileHash,
    salt: salt.toString('base64'),
    uploadId,
    fileKey: fileKey.toString('base64'),
  };
  return { bodies, reference };
}

/** A chunk with one bit changed, under a checksum of its own. */
export function alteredChunk<T extends { readonly encryptedData: string }>(body: T): T {
  const bytes = Buffer.from(body.encryptedData, 'base64');
  bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
  return { ...body, encryptedData: bytes.toString('base64'), checksum: hash(bytes) };
}
