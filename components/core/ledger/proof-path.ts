import { decodeHex, encodeHex } from '../encoding/hex.ts';
import type { ProofStep } from './merkle.ts';

/** A proof step in JSON: lower-case hex. */
export interface WireProofStep {
  readonly hash: string;
  readonly position: 'Left' | 'Right';
}

/** An inclusion path for JSON. */
export function presentPath(path: readonly ProofStep[]): WireProofStep[] {
  return path.map(({ hash, position }) => ({ hash: encodeHex(hash), position }));
}

/**
 * Parses an inclusion path from JSON.
 * @throws AppError invalid INVALID_HEX
 */
export function parsePath(path: readonly WireProofStep[]): ProofStep[] {
  return path.map(({ hash, position }) => ({ hash: decodeHex(hash, 32), position }));
}

/** Hashes for JSON, lower-case hex. */
export function presentHashes(hashes: readonly Uint8Array[]): string[] {
  return hashes.map(encodeHex);
}

/** Parses hashes of 32 bytes from JSON; throws like parsePath. */
export function parseHashes(hashes: readonly string[]): Uint8Array[] {
  return hashes.map((hash) => decodeHex(hash, 32));
}
