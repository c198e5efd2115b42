import { describe, expect, it } from 'vitest';
import { readDer } from '../encoding/der.ts';
import { judge } from '../errors/judgement.ts';
import { findSignatureScheme } from './signature-algorithm.ts';

describe('a signature algorithm', () => {
  const pss = (hash: string, mask: string, salt: string) =>
    `304106092a864886f70d01010a3034a00f300d0609608648016503040${hash}0500a11c301a06092a864886f70d010108300d0609608648016503040${mask}0500a2030201${salt}`;

  // The accepted ones of PSS are what OpenSSL 3.0 writes.
  it.each([
    ['ECDSA with SHA-256', '300a06082a8648ce3d040302', true],
    ['ECDSA with SHA-1', '300906072a8648ce3d0401', false],
    ['ECDSA with parameters', '300c06082a8648ce3d0403020500', false],
    ['RSA with SHA-256', '300d06092a864886f70d01010b0500', true],
    ['RSA with SHA-224', '300d06092a864886f70d01010e0500', false],
    ['RSA with MD5', '300d06092a864886f70d0101040500', false],
    ['PSS with SHA-256', pss('201', '201', '20'), true],
    ['PSS with SHA-384', pss('202', '202', '30'), true],
    ['PSS with SHA-512', pss('203', '203', '40'), true],
    ['PSS with two hashes', pss('201', '203', '20'), false],
    ['PSS without a salt', pss('201', '201', '00'), false],
    ['PSS with SHA-224', pss('204', '204', '1c'), false],
    ['PSS with the defaults, SHA-1', '300d06092a864886f70d01010a3000', false],
    ['PSS without parameters', '300b06092a864886f70d01010a', false],
    ['no DER', '30', false],
  ])('%s', (_what, hex, isAccepted) => {
    const { result } = judge(() => findSignatureScheme(readDer(Buffer.from(hex, 'hex'))));
    expect(result !== undefined).toBe(isAccepted);
  });
});
