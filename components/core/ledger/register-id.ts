import { sha256Hex } from '../crypto/hash.ts';
import { AppError } from '../errors/errors.ts';

declare const registerIdBrand: unique symbol;
declare const txIdBrand: unique symbol;
declare const docketHashBrand: unique symbol;

/** 32 lower-case hexadecimal characters: a UUID without hyphens. */
export type RegisterId = string & { readonly [registerIdBrand]: true };
/** 64 lower-case hexadecimal characters. */
export type TxId = string & { readonly [txIdBrand]: true };
/** 64 lower-case hexadecimal characters. */
type DocketHash = string & { readonly [docketHashBrand]: true };

/** previousHash of docket 0. */
export const ZERO_HASH = '0'.repeat(64);

/** Finds the register id in a text, in lower case; undefined when the text is none. */
export function findRegisterId(text: string): RegisterId | undefined {
  return /^[0-9a-fA-F]{32}$/.test(text) ? (text.toLowerCase() as RegisterId) : undefined;
}

/**
 * Parses a register id.
 * @throws AppError invalid VAL_STRUCT_003
 */
export function parseRegisterId(text: string): RegisterId {
  const id = findRegisterId(text);
  if (id === undefined)
    throw new AppError('invalid', 'VAL_STRUCT_003', 'Register id is not 32 hexadecimal characters');
  return id;
}

/** The register id of a UUID: the same characters without hyphens. Throws like parseRegisterId. */
export function registerIdOfUuid(uuid: string): RegisterId {
  return parseRegisterId(uuid.replaceAll('-', ''));
}

/** The id of the system register of a network. */
export function systemRegisterId(networkId: string): RegisterId {
  return sha256Hex(`platform:system-register:${networkId}`).slice(0, 32) as RegisterId;
}

/** Finds the transaction id in a text, in lower case; undefined when the text is none. */
export function findTxId(text: string): TxId | undefined {
  return /^[0-9a-fA-F]{64}$/.test(text) ? (text.toLowerCase() as TxId) : undefined;
}

/**
 * Parses a transaction id.
 * @throws AppError invalid VAL_STRUCT_002
 */
export function parseTxId(text: string): TxId {
  const id = findTxId(text);
  if (id === undefined)
    throw new AppError('invalid', 'VAL_STRUCT_002', 'Transaction id is not 64 hexadecimal characters');
  return id;
}

/** Finds the docket hash in a text, in lower case; undefined when the text is none. */
export function findDocketHash(text: string): DocketHash | undefined {
  return /^[0-9a-fA-F]{64}$/.test(text) ? (text.toLowerCase() as DocketHash) : undefined;
}
