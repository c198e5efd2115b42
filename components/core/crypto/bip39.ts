import { pbkdf2Sync } from 'node:crypto';
import { entropyToMnemonic, mnemonicToEntropy } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { AppError } from '../errors/errors.ts';

/** Lower case, single spaces, NFKD, so that typed and pasted words give one mnemonic. */
function normalise(mnemonic: string): string {
  return mnemonic.normalize('NFKD').trim().toLowerCase().split(/\s+/).join(' ');
}

/**
 * The English mnemonic of random bytes (BIP-39): 16 bytes give 12 words, 32 bytes 24.
 * @throws AppError invalid INVALID_ENTROPY for another size
 */
export function mnemonicFromEntropy(entropy: Uint8Array): string {
  if (entropy.length !== 16 && entropy.length !== 32) {
    throw new AppError('invalid', 'INVALID_ENTROPY', 'Entropy has 16 or 32 bytes');
  }
  return entropyToMnemonic(entropy, wordlist);
}

/** Whether a text is an English mnemonic of 12 to 24 words with a valid checksum. */
export function isMnemonic(text: string): boolean {
  try {
    return mnemonicToEntropy(normalise(text), wordlist).length >= 16;
  } catch {
    return false;
  }
}

/**
 * The 64-byte seed of a mnemonic (BIP-39: PBKDF2-HMAC-SHA-512, 2048 rounds).
 * @throws AppError invalid INVALID_MNEMONIC; the message never repeats the words
 */
export function seedFromMnemonic(mnemonic: string, passphrase = ''): Uint8Array {
  const words = normalise(mnemonic);
  if (!isMnemonic(words)) {
    throw new AppError('invalid', 'INVALID_MNEMONIC', 'Words are no English mnemonic with a right checksum');
  }
  return pbkdf2Sync(words, `mnemonic${passphrase.normalize('NFKD')}`, 2048, 64, 'sha512');
}
