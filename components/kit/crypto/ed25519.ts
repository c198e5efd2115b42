import { createRequire } from 'node:module';
import { type Ed25519Backend, nodeEd25519 } from '#core/crypto/verify.ts';

/** Library that verifies the equation of Ed25519; `auto` is sodium where it loads. */
export type Ed25519Choice = 'auto' | 'sodium' | 'node';

interface LoadedEd25519 {
  readonly name: 'sodium' | 'node';
  readonly backend: Ed25519Backend;
}

type VerifyDetached = (signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array) => boolean;

function isVerifyDetached(value: unknown): value is VerifyDetached {
  return typeof value === 'function';
}

/** The function of sodium-native; undefined where the prebuilt library does not load. */
function findVerifyDetached(): VerifyDetached | undefined {
  try {
    const loaded: unknown = createRequire(import.meta.url)('sodium-native');
    if (typeof loaded !== 'object' || loaded === null || !('crypto_sign_verify_detached' in loaded))
      return undefined;
    const verify: unknown = loaded.crypto_sign_verify_detached;
    return isVerifyDetached(verify) ? verify : undefined;
  } catch {
    return undefined;
  }
}

/** Ed25519 by libsodium; undefined where sodium-native does not load (it is an optional dependency). */
export function findSodiumEd25519(): Ed25519Backend | undefined {
  const verifyDetached = findVerifyDetached();
  if (verifyDetached === undefined) return undefined;
  return { verify: (key32, message, signature64) => verifyDetached(signature64, message, key32) };
}

/**
 * The backend to verify Ed25519 with. Pass it to createVerifier, which applies the strict rules before it.
 * @throws Error when `sodium` is required and does not load
 */
export function loadEd25519(choice: Ed25519Choice = 'auto'): LoadedEd25519 {
  const sodium = choice === 'node' ? undefined : findSodiumEd25519();
  if (sodium !== undefined) return { name: 'sodium', backend: sodium };
  if (choice === 'sodium') throw new Error('sodium-native does not load on this machine');
  return { name: 'node', backend: nodeEd25519() };
}
