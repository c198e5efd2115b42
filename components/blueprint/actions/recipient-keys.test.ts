import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ParticipantKey } from '../clients/ledger.ts';
import type { ExternalKey } from '../operations/operation.ts';
import { resolveRecipientKeys } from './recipient-keys.ts';

const wallet = 'w1recipient';
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
  format: 'der',
  type: 'spki',
});
const x25519 = Buffer.from(
  generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x ?? '',
  'base64url',
);

/** Resolves the key of one wallet that is not held here. */
function resolve(external: ExternalKey | undefined, records: readonly ParticipantKey[] = []) {
  return resolveRecipientKeys(
    {
      ledger: { findParticipantKeys: async () => [...records] },
      wallets: { findEncryptionKeys: async () => [] },
    },
    '0'.repeat(32),
    [wallet],
    external === undefined ? {} : { [wallet]: external },
  );
}

const named = (algorithm: ExternalKey['algorithm'], bytes: Uint8Array): ExternalKey => ({
  algorithm,
  publicKey: Buffer.from(bytes).toString('base64'),
});

describe('keys of recipients without a wallet here', () => {
  it.each<[ExternalKey['algorithm'], Buffer]>([
    ['X25519', x25519],
    ['NISTP256', p256],
  ])('are those that the sender names (%s)', async (algorithm, publicKey) => {
    const keys = await resolve(named(algorithm, publicKey));
    expect(keys.get(wallet)).toMatchObject({ kid: wallet, algorithm });
    expect(Buffer.from(keys.get(wallet)?.publicKey ?? []).equals(publicKey)).toBe(true);
  });

  it.each<[string, ExternalKey | undefined]>([
    ['none is named', undefined],
    ['it has too few bytes', named('X25519', x25519.subarray(1))],
    ['it is of low order', named('X25519', Buffer.alloc(32))],
    ['it is of another type', named('RSA', p256)],
    ['it is no point of the curve', named('NISTP256', Buffer.from(p256).fill(1, p256.length - 64))],
    ['it is not base64', { algorithm: 'X25519', publicKey: '***' }],
  ])('are not resolved when %s', async (_name, key) => {
    await expect(resolve(key)).rejects.toMatchObject({
      code: 'RECIPIENT_KEY_UNRESOLVED',
      details: { wallets: [wallet] },
    });
  });

  it('are those of the register before others, which encrypt too or are not resolved', async () => {
    const record = { address: wallet, status: 'Active', ...named('NISTP256', p256) };
    const keys = await resolve(named('X25519', x25519), [record]);
    expect(keys.get(wallet)?.algorithm).toBe('NISTP256');
    const broken = { ...record, publicKey: 'AAAA' };
    await expect(resolve(named('X25519', x25519), [broken])).rejects.toMatchObject({
      code: 'RECIPIENT_KEY_UNRESOLVED',
    });
  });
});
