import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openFixture, person, type Replica } from '../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../testing/http-client.ts';

const unreadable = ['\u202e', '\u2069', '\u00ad', '\u200b', '\ufeff', '\u0007', '\r', '\ud800', '\u{e0041}'];

describe('human-readable texts of wallets', () => {
  let replica: Replica;
  let client: HttpClient;

  beforeAll(async () => {
    replica = await openFixture('wallet_texts');
    client = createHttpClient(replica);
    client.callers.set('alice', person());
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  test.each(unreadable)('the character %j is refused', async (character) => {
    const text = `Ma${character}in`;
    const { id, mnemonic } = await client.made('alice');
    const status = async (target: string, body: object) =>
      (await client.call('alice', target, { body })).status;
    const grant = { subject: crypto.randomUUID(), accessRight: 'ReadOnly', reason: text };
    expect([
      await status('POST /api/wallets', { keyType: 'ED25519', title: text }),
      await status('POST /api/wallets', { keyType: 'ED25519', title: 'Main', description: text }),
      await status('POST /api/wallets/recover', { keyType: 'ED25519', mnemonic, title: text }),
      await status('POST /api/wallets/recover', { keyType: 'ED25519', mnemonic, description: text }),
      await status(`POST /api/wallets/${id}/access`, grant),
    ]).toEqual([400, 400, 400, 400, 400]);
  });

  test('a title is one visible line; a description may have several lines', async () => {
    for (const title of ['a\nb', 'a\tb', ' ', '\u200d', '\u3164']) {
      const body = { keyType: 'ED25519', title };
      expect((await client.call('alice', 'POST /api/wallets', { body })).status).toBe(400);
    }
    const made = await client.made('alice', 'ED25519', {
      title: ' می\u200cخواهم 👩\u200d👧 ',
      description: 'one\n\ttwo',
    });
    expect(made).toMatchObject({ title: 'می\u200cخواهم 👩\u200d👧', description: 'one\n\ttwo' });
  });

  test('text to encrypt is not changed: every character is encrypted', async () => {
    const { id } = await client.made('alice');
    const data = 'a\u202eb\u00ad\r\n';
    const sealed = await client.call('alice', `POST /api/wallets/${id}/encrypt`, {
      body: { data, recipientWalletId: id },
    });
    const { encryptedData } = sealed.body;
    const opened = await client.call('alice', `POST /api/wallets/${id}/decrypt`, { body: { encryptedData } });
    expect(opened.body.data).toBe(data);
  });
});
