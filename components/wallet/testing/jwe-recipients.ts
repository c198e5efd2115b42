import { createDecipheriv, createPublicKey, type KeyObject } from 'node:crypto';
import { GeneralEncrypt, type GeneralJWE } from 'jose';
import { z } from 'zod';

const X25519_SPKI = Buffer.from('302a300506032b656e032100', 'hex');

/** A key of FindEncryptionKeys. */
export interface FoundKey {
  readonly kid?: string | undefined;
  readonly algorithm?: string | undefined;
  readonly publicKey?: string | undefined;
}

/** A key of UnwrapKeys. */
export interface Wrapped {
  readonly kid: string;
  readonly alg: string;
  readonly epk: { readonly crv: string; readonly x: Uint8Array; readonly y: Uint8Array } | undefined;
  readonly apu: Uint8Array;
  readonly apv: Uint8Array;
  readonly encryptedKey: Uint8Array;
}

interface Parties {
  readonly apu?: Uint8Array;
  readonly apv?: Uint8Array;
}

function keyObjectOf({ algorithm, publicKey = '' }: FoundKey): KeyObject {
  const raw = Buffer.from(publicKey, 'base64');
  const der = algorithm === 'X25519' ? Buffer.concat([X25519_SPKI, raw]) : raw;
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}

/** A JWE of a text for several keys, by jose. */
export async function sealFor(
  keys: readonly FoundKey[],
  text: string,
  parties: Parties = {},
): Promise<GeneralJWE> {
  const jwe = new GeneralEncrypt(Buffer.from(text)).setProtectedHeader({ enc: 'A256GCM' });
  for (const key of keys) {
    const isRsa = key.algorithm === 'RSA-4096';
    const recipient = jwe
      .addRecipient(keyObjectOf(key))
      .setUnprotectedHeader({ alg: isRsa ? 'RSA-OAEP-256' : 'ECDH-ES+A256KW', kid: key.kid ?? '' });
    if (!isRsa) recipient.setKeyManagementParameters(parties);
  }
  return jwe.encrypt();
}

const epkSchema = z.object({ crv: z.string(), x: z.string(), y: z.string().default('') });

/** The recipients of a JWE as UnwrapKeys takes them. jose writes the key of a single one to the protected header. */
export function recipientsOf({ recipients, ...jwe }: GeneralJWE): Wrapped[] {
  const shared: unknown = JSON.parse(Buffer.from(jwe.protected ?? '', 'base64url').toString());
  return recipients.map(({ header: own = {}, encrypted_key = '' }) => {
    const header = { ...z.looseObject({}).parse(shared), ...own };
    const epk = epkSchema.optional().parse(header['epk']);
    const bytesOf = (text: unknown) => Buffer.from(String(text ?? ''), 'base64url');
    return {
      kid: String(header.kid),
      alg: String(header.alg),
      epk: epk && { crv: epk.crv, x: bytesOf(epk.x), y: bytesOf(epk.y) },
      apu: bytesOf(header['apu']),
      apv: bytesOf(header['apv']),
      encryptedKey: bytesOf(encrypted_key),
    };
  });
}

/** The text of a JWE under its content key (RFC 7516, section 5.2, steps 14 to 16). */
export function openWith(contentKey: Uint8Array, jwe: GeneralJWE): string {
  const { iv = '', tag = '', ciphertext, protected: header = '' } = jwe;
  const decipher = createDecipheriv('aes-256-gcm', contentKey, Buffer.from(iv, 'base64url'));
  decipher.setAAD(Buffer.from(header));
  decipher.setAuthTag(Buffer.from(tag, 'base64url'));
  return Buffer.concat([decipher.update(Buffer.from(ciphertext, 'base64url')), decipher.final()]).toString();
}
