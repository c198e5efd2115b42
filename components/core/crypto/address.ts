import { bech32m } from '@scure/base';
import { AppError } from '../errors/errors.ts';
import { type Algorithm, algorithmCode, findAlgorithmByCode } from './algorithm.ts';
import { sha256 } from './hash.ts';
import { parsePublicKey, spkiOf } from './public-key.ts';

declare const walletAddressBrand: unique symbol;
/** A bech32m address of exactly 61 characters that starts with `w1`. */
export type WalletAddress = string & { readonly [walletAddressBrand]: true };

interface AddressParts {
  readonly address: WalletAddress;
  readonly algorithm: Algorithm;
  /** SHA-256 of the SPKI DER of the key, 32 bytes. */
  readonly keyHash: Uint8Array;
}

const PREFIX = 'w';
const ADDRESS_LENGTH = 61;

/**
 * The address of a public key: bech32m, hrp `w`, one five-bit algorithm code, SHA-256 of the SPKI DER.
 * @param publicKey the canonical key form: 32 raw bytes for Ed25519, SPKI DER otherwise
 */
export function walletAddress(algorithm: Algorithm, publicKey: Uint8Array): WalletAddress {
  const words = bech32m.toWords(sha256(spkiOf(algorithm, publicKey)));
  return bech32m.encode(PREFIX, [algorithmCode(algorithm), ...words]) as WalletAddress;
}

/**
 * Gives the address of a signer from its key: base64 of the canonical key form.
 * @throws AppError invalid when the text is no such key
 */
export type SignerAddress = (algorithm: Algorithm, publicKey: string) => WalletAddress;

export const signerAddress: SignerAddress = (algorithm, publicKey) =>
  walletAddress(algorithm, parsePublicKey(algorithm, publicKey));

/**
 * A signerAddress with a cache of `most` answers: senders repeat, and the address costs as much as parsing the
 * transaction.
 */
export function rememberedAddresses(most: number): SignerAddress {
  const known = new Map<string, WalletAddress>();
  return (algorithm, publicKey) => {
    const key = `${algorithm}:${publicKey}`;
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const address = signerAddress(algorithm, publicKey);
    if (known.size >= most) known.clear();
    known.set(key, address);
    return address;
  };
}

/**
 * Finds the parts of an address; undefined when the text is not one. Only lower case is accepted: an address has one
 * spelling.
 */
export function findAddressParts(text: string): AddressParts | undefined {
  if (text.length !== ADDRESS_LENGTH || !/^w1[02-9ac-hj-np-z]+$/.test(text)) return undefined;
  const decoded = bech32m.decodeUnsafe(text);
  if (decoded === undefined || decoded.prefix !== PREFIX) return undefined;
  const [code, ...words] = decoded.words;
  const algorithm = code === undefined ? undefined : findAlgorithmByCode(code);
  const keyHash = bech32m.fromWordsUnsafe(words);
  if (algorithm === undefined || !(keyHash instanceof Uint8Array) || keyHash.length !== 32) return undefined;
  return { address: text as WalletAddress, algorithm, keyHash };
}

/** Whether a text is a wallet address, checksum included. */
export function isWalletAddress(text: string): text is WalletAddress {
  return findAddressParts(text) !== undefined;
}

/**
 * Parses a wallet address.
 * @throws AppError invalid INVALID_WALLET_ADDRESS
 */
export function parseAddress(text: string): AddressParts {
  const parts = findAddressParts(text);
  if (parts === undefined)
    throw new AppError('invalid', 'INVALID_WALLET_ADDRESS', 'Text is not a wallet address');
  return parts;
}
