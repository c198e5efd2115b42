import { describe, expect, it } from 'vitest';
import { decodeBase64Any } from '../encoding/base64.ts';
import { decodeHex } from '../encoding/hex.ts';
import { utf8 } from '../encoding/text.ts';
import { walletAddress } from './address.ts';
import { parseAlgorithm } from './algorithm.ts';
import figures from './vectors/signatures.json' with { type: 'json' };
import { createVerifier, nodeEd25519 } from './verify.ts';

const verifier = createVerifier(nodeEd25519());

// Made by Python's `cryptography`, which shares only OpenSSL's primitives with this code.
describe.each(figures)('$algorithm by a second implementation', (each) => {
  const algorithm = parseAlgorithm(each.algorithm);
  const publicKey = decodeBase64Any(each.publicKey);
  const digest = decodeHex(each.digest);
  const preimage = utf8(each.text);
  const judge = (text: string): boolean[] => {
    const signature = decodeBase64Any(text);
    return [
      verifier.verifyDigest({ algorithm, publicKey, digest, signature }),
      verifier.verifyPreimage({ algorithm, publicKey, preimage, signature }),
    ];
  };

  it('the address of the key', () => {
    expect(walletAddress(algorithm, publicKey)).toBe(each.address);
  });

  it('signatures over the text and over its pre-hash', () => {
    expect(judge(each.overText)).toEqual([true, true]);
    expect(judge(each.overDigest)).toEqual([true, true]);
  });

  it('the digest as a message, and other schemes (DER, PSS), are refused', () => {
    expect(judge(each.overDigestAsMessage)).toEqual([false, false]);
    expect(judge(each.otherScheme)).toEqual([false, false]);
  });
});
