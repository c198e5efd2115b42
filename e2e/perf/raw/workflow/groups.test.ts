import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { unwrap } from '../key-wrap.ts';
import { decrypt, encrypt, openGroup, sealGroup, wrappedFor } from './groups.ts';

const data = { siteReference: 'AB-1234', floorAreaM2: 620 };

function reader(): { readonly x: string; readonly key: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const der = privateKey.export({ type: 'pkcs8', format: 'der' });
  const { x = '' } = publicKey.export({ format: 'jwk' });
  return { x, key: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }) };
}

describe('groups of the raw workflow service', () => {
  const [office, board] = [reader(), reader()];
  const group = sealGroup('register|instance|0', data, [
    ['office', office.x],
    ['board', board.x],
  ]);

  test('each reader opens them with their own key', () => {
    for (const [name, { key }] of [
      ['office', office],
      ['board', board],
    ] as const) {
      const wrapped = wrappedFor(group, name);
      if (wrapped === undefined) throw new Error('the group is not for its reader');
      expect(openGroup(group, unwrap(key, wrapped))).toEqual(data);
    }
    expect(JSON.stringify(group)).not.toContain('AB-1234');
  });

  test('no other key does, and what was changed does not open', () => {
    expect(wrappedFor(group, 'newspaper')).toBeUndefined();
    const wrapped = wrappedFor(group, 'office');
    if (wrapped === undefined) throw new Error('the group is not for its reader');
    expect(() => unwrap(board.key, wrapped)).toThrow();
    const contentKey = unwrap(office.key, wrapped);
    expect(() => openGroup({ ...group, aad: 'b3RoZXI' }, contentKey)).toThrow();
    expect(() => openGroup({ ...group, commitment: 'sha256:00' }, contentKey)).toThrow('commitment');
  });

  test('values at rest are bound to their name', () => {
    const key = Buffer.alloc(32, 7);
    const sealed = encrypt(key, Buffer.from('input'), 'operation 1');
    expect(decrypt(key, sealed, 'operation 1').toString()).toBe('input');
    expect(() => decrypt(key, sealed, 'operation 2')).toThrow();
  });
});
