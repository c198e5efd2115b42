import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { refusal } from '../errors.ts';
import type { KeyMaterial } from './material.ts';

const RSA_BITS = 4096;
const runningLimit = 2;
const waitingLimit = 16;
const retryAfterSeconds = 5;
const generate = promisify(generateKeyPair);

interface RsaGeneratorOptions {
  /** generates one key; takes about a second of a thread in production */
  readonly make?: () => Promise<KeyMaterial>;
}

/**
 * Generates RSA keys, two at a time, because each occupies a thread of the pool that all other crypto of the process
 * uses. A bounded queue holds further requests; beyond it they are refused with `Retry-After`.
 */
export class RsaGenerator {
  readonly #make: () => Promise<KeyMaterial>;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: RsaGeneratorOptions = {}) {
    this.#make = options.make ?? makeRsaMaterial;
  }

  /** @throws AppError rate_limited KEY_GENERATION_BUSY */
  async generate(): Promise<KeyMaterial> {
    if (this.#running >= runningLimit) await this.#turn();
    else this.#running += 1;
    try {
      return await this.#make();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  // A finished generation hands its slot directly to the next waiting request, so a new request cannot take it first.
  #turn(): Promise<void> {
    if (this.#waiting.length >= waitingLimit) {
      throw refusal('KEY_GENERATION_BUSY', { retryAfterSeconds });
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    return promise;
  }
}

async function makeRsaMaterial(): Promise<KeyMaterial> {
  const { privateKey } = await generate('rsa', { modulusLength: RSA_BITS, publicExponent: 65_537 });
  return { purpose: 'pkcs8', secret: privateKey.export({ type: 'pkcs8', format: 'der' }) };
}
