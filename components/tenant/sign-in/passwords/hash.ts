import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { normalizePassword } from './policy.ts';

/** OWASP's minimum for argon2id: 19 MiB, two passes, one lane. */
export interface HashCost {
  readonly memoryKiB: number;
  readonly passes: number;
}

export const defaultHashCost: HashCost = { memoryKiB: 19_456, passes: 2 };

const tagLength = 32;
const pattern = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** A PHC string: `$argon2id$v=19$m=19456,t=2,p=1$salt$tag`. */
export async function hashPassword(password: string, cost: HashCost): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await derive(password, nonce, cost);
  return `$argon2id$v=19$m=${cost.memoryKiB},t=${cost.passes},p=1$${unpadded(nonce)}$${unpadded(tag)}`;
}

export async function verifyPassword(password: string, phc: string): Promise<boolean> {
  const parts = pattern.exec(phc);
  if (parts === null) return false;
  const [, memory = '', passes = '', salt = '', tag = ''] = parts;
  const expected = Buffer.from(tag, 'base64');
  if (expected.length !== tagLength) return false;
  const cost = { memoryKiB: Number(memory), passes: Number(passes) };
  return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64'), cost), expected);
}

/** True when a stored hash has other cost parameters than the current ones. */
export function needsRehash(phc: string, cost: HashCost): boolean {
  const parts = pattern.exec(phc);
  return Number(parts?.[1]) !== cost.memoryKiB || Number(parts?.[2]) !== cost.passes;
}

function derive(password: string, nonce: Buffer, cost: HashCost): Promise<Buffer> {
  const parameters: Argon2Parameters = {
    message: normalizePassword(password),
    nonce,
    parallelism: 1,
    tagLength,
    memory: cost.memoryKiB,
    passes: cost.passes,
  };
  return new Promise((resolve, reject) => {
    argon2('argon2id', parameters, (error, tag) => (error === null ? resolve(tag) : reject(error)));
  });
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
