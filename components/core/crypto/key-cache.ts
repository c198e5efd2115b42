import type { KeyObject } from 'node:crypto';
import type { Algorithm } from './algorithm.ts';
import { importPublicKey } from './public-key.ts';

/** Imported public keys by algorithm and bytes; importing costs up to half of a verification. */
export interface KeyCache {
  /** Undefined when the bytes are no key of the algorithm. Such answers are not cached. */
  find(algorithm: Algorithm, publicKey: Uint8Array): KeyObject | undefined;
}

/** A cache of at most `maxKeys` keys that evicts the least recently used one. */
export function createKeyCache(maxKeys = 4096): KeyCache {
  const keys = new Map<string, KeyObject>();
  return {
    find(algorithm, publicKey) {
      const name = `${algorithm}:${Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.length).toString('latin1')}`;
      const known = keys.get(name);
      if (known !== undefined) {
        keys.delete(name);
        keys.set(name, known);
        return known;
      }
      const key = importPublicKey(algorithm, publicKey);
      if (key === undefined) return undefined;
      if (keys.size >= maxKeys) {
        const oldest = keys.keys().next();
        if (!oldest.done) keys.delete(oldest.value);
      }
      keys.set(name, key);
      return key;
    },
  };
}
