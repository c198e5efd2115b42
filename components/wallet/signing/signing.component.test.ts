import { createHash, createPublicKey, randomBytes, randomUUID, verify } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { CompactEncrypt } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openFixture, person, type Replica, type ReplicaOptions, rpcContext } from '../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../testing/http-client.ts';
import { walletHandlers } from './rpc.ts';

const X25519_SPKI = Buffer.from('302a300506032b656e032100', 'hex');
const ATTESTATION = 'platform:register-attestation';

function openSslVerify(
  wallet: { keyType: string; publicKey: string },
  data: Buffer,
  signature: string,
): boolean {
  const raw = Buffer.from(wallet.publicKey, 'base64');
  const der =
    wallet.keyType === 'ED25519' ? Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), raw]) : raw;
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  const digest = wallet.keyType === 'ED25519' ? null : 'sha256';
  return verify(digest, data, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64'));
}

describe('signing and encryption', () => {
  const alice = person();
  const bob = person();
  let replica: Replica & ReplicaOptions;
  let client: HttpClient;

  beforeAll(async () => {
    replica = await openFixture('wallet_signing');
    client = createHttpClient(replica);
    client.callers.set('alice', alice).set('bob', bob);
    client.callers.set('service', person({ kind: 'service', tier: 'service', platformUserId: undefined }));
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  describe.each(['ED25519', 'NISTP256', 'RSA'])('%s', (keyType) => {
    test('create, get, sign, verify', async () => {
      const wallet = await client.made('alice', keyType);
      expect(wallet).toMatchObject({
        keyType,
        status: 'Active',
        owner: alice.platformUserId,
        organizationId: null,
      });
      expect(wallet.walletAddress).toHaveLength(61);
      expect(wallet.algorithm).toBe(keyType === 'RSA' ? 'RSA-4096' : keyType);
      expect(wallet.mnemonic?.split(' ').length).toBe(keyType === 'RSA' ? undefined : 24);
      for (const url of [`/api/wallets/${wallet.id}`, `/api/v1/wallets/${wallet.walletAddress}`]) {
        const { mnemonic: _mnemonic, ...rest } = wallet;
        expect((await client.call('alice', `GET ${url}`)).body).toEqual(rest);
      }
      const data = randomBytes(40);
      const signed = await client.call('alice', `POST /api/v1/wallets/${wallet.walletAddress}/sign`, {
        body: { data: data.toString('base64url'), algorithm: keyType },
      });
      expect(signed.status).toBe(200);
      expect(signed.body).toMatchObject({ signedBy: wallet.walletAddress, keyAddress: wallet.walletAddress });
      expect(openSslVerify(wallet, data, signed.body.signature)).toBe(true);
      for (const [bytes, isValid] of [
        [data, true],
        [randomBytes(40), false],
      ] as const) {
        const judged = await client.call('bob', 'POST /api/wallets/verify', {
          body: {
            publicKey: signed.body.publicKey,
            data: bytes.toString('base64'),
            signature: signed.body.signature,
            algorithm: signed.body.algorithm,
          },
        });
        expect(judged.body).toEqual({ isValid });
      }
      const digest = createHash('sha256').update(data).digest();
      const preHashed = await client.call('alice', `POST /api/wallets/${wallet.id}/sign`, {
        body: { data: digest.toString('base64'), algorithm: wallet.algorithm, isPreHashed: true },
      });
      const message = keyType === 'ED25519' ? digest : data;
      expect(openSslVerify(wallet, message, preHashed.body.signature)).toBe(true);
    });

    test('encrypt and decrypt; every tampered part gets the same refusal', async () => {
      const wallet = await client.made('alice', keyType);
      const sealed = await client.call('bob', `POST /api/wallets/${(await client.made('bob')).id}/encrypt`, {
        body: { data: 'Grüße, 世界', recipientWalletId: wallet.walletAddress },
      });
      expect(sealed.body).toMatchObject({
        algorithm: 'AES-256-GCM',
        recipientWalletId: wallet.walletAddress,
      });
      const { encryptedData } = sealed.body;
      const opened = await client.call('alice', `POST /api/wallets/${wallet.id}/decrypt`, {
        body: { encryptedData },
      });
      expect(opened.body.data).toBe('Grüße, 世界');
      const [header, key, iv, text, tag] = encryptedData.split('.');
      const flip = (part: string) => `${part.slice(0, 5)}${part[5] === 'A' ? 'B' : 'A'}${part.slice(6)}`;
      const tampered = [
        [header, key, iv, flip(text), tag],
        [header, key, iv, text, flip(tag)],
        [header, flip(key), iv, text, tag],
        [header, key, iv, text],
      ].map((parts) => parts.join('.'));
      for (const each of [...tampered, 'nonsense', 'a.b.c.d.e']) {
        const refused = await client.call('alice', `POST /api/wallets/${wallet.id}/decrypt`, {
          body: { encryptedData: each },
        });
        expect(refused).toMatchObject({ status: 422, body: { code: 'DECRYPT_FAILED' } });
      }
      const other = await client.made('alice', keyType === 'RSA' ? 'ED25519' : keyType);
      const wrong = await client.call('alice', `POST /api/wallets/${other.id}/decrypt`, {
        body: { encryptedData },
      });
      expect(wrong).toMatchObject({ status: 422, body: { code: 'DECRYPT_FAILED' } });
    });
  });

  test('text encrypted with only the public key of the wallet is decrypted by the owner and not by a delegate', async () => {
    for (const keyType of ['ED25519', 'NISTP256']) {
      const wallet = await client.made('alice', keyType);
      const raw = Buffer.from(wallet.publicKey, 'base64');
      const x25519 = () => Buffer.concat([X25519_SPKI, ed25519.utils.toMontgomery(raw)]);
      const key = createPublicKey({
        key: keyType === 'ED25519' ? x25519() : raw,
        format: 'der',
        type: 'spki',
      });
      const encryptedData = await new CompactEncrypt(Buffer.from('hello'))
        .setProtectedHeader({ alg: 'ECDH-ES+A256KW', enc: 'A256GCM', kid: wallet.walletAddress })
        .encrypt(key);
      const decrypt = (who: string) =>
        client.call(who, `POST /api/wallets/${wallet.id}/decrypt`, { body: { encryptedData } });
      expect((await decrypt('alice')).body.data).toBe('hello');
      const grant = {
        subject: bob.platformUserId,
        accessRight: 'ReadWrite',
        allowedDerivationContexts: ['platform:payload-encryption'],
      };
      expect(
        (await client.call('alice', `POST /api/wallets/${wallet.id}/access`, { body: grant })).status,
      ).toBe(201);
      expect((await decrypt('bob')).status).toBe(403);
    }
  });

  test('a JWE of another algorithm or content cipher is refused', async () => {
    const wallet = await client.made('alice');
    const spki = Buffer.concat([X25519_SPKI, Buffer.from(wallet.encryptionPublicKey, 'base64')]);
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
    const kid = `${wallet.walletAddress}#platform:payload-encryption`;
    const headers = [
      { alg: 'ECDH-ES', enc: 'A256GCM', kid },
      { alg: 'ECDH-ES+A128KW', enc: 'A256GCM', kid },
      { alg: 'ECDH-ES+A256KW', enc: 'A256CBC-HS512', kid },
      { alg: 'ECDH-ES+A256KW', enc: 'A256GCM', kid: 'w1other' },
    ];
    for (const header of headers) {
      const encryptedData = await new CompactEncrypt(Buffer.from('x'))
        .setProtectedHeader(header)
        .encrypt(key);
      const answer = await client.call('alice', `POST /api/wallets/${wallet.id}/decrypt`, {
        body: { encryptedData },
      });
      expect(answer).toMatchObject({ status: 422, body: { code: 'DECRYPT_FAILED' } });
    }
  });

  test('refusals of sign: caller, request and state of the wallet', async () => {
    const wallet = await client.made('alice');
    const sign = (who: string, body: object, id = wallet.id) =>
      client.call(who, `POST /api/wallets/${id}/sign`, { body });
    const good = { data: randomBytes(32).toString('base64'), algorithm: 'ED25519' };
    expect(await sign('bob', good)).toMatchObject({ status: 403, body: { code: 'WALLET_ACCESS_DENIED' } });
    expect(await sign('service', good)).toMatchObject({ status: 403, body: { code: 'PERSON_REQUIRED' } });
    for (const id of [randomUUID(), 'w1nothing', 'x'.repeat(36)]) {
      expect(await sign('alice', good, id)).toMatchObject({
        status: 404,
        body: { code: 'WALLET_NOT_FOUND' },
      });
    }
    const wrong = [
      [{ algorithm: 'NISTP256' }, 400, 'ALGORITHM_MISMATCH'],
      [{ derivationPath: 'platform:nothing' }, 400, 'UNKNOWN_DERIVATION_CONTEXT'],
      [{ derivationPath: 'm/44' }, 400, 'UNKNOWN_DERIVATION_CONTEXT'],
      [{ derivationPath: 'platform:docket-signing' }, 403, 'DERIVATION_CONTEXT_RESERVED'],
      [{ derivationPath: 'platform:register-control' }, 403, 'DERIVATION_CONTEXT_RESERVED'],
      [{ derivationPath: 'platform:payload-encryption' }, 403, 'DERIVATION_CONTEXT_RESERVED'],
      [{ hybridMode: true }, 501, 'HYBRID_UNSUPPORTED'],
      [{ isPreHashed: true, data: 'AAAA' }, 400, 'PREHASH_LENGTH'],
      [{ data: 'not base64!' }, 400, 'INVALID_BASE64'],
      [{ data: 7 }, 400, 'INVALID_REQUEST'],
    ] as const;
    for (const [change, status, code] of wrong) {
      expect(await sign('alice', { ...good, ...change })).toMatchObject({ status, body: { code } });
    }
    const rsa = await client.made('alice', 'RSA');
    const derived = { ...good, algorithm: 'RSA', derivationPath: ATTESTATION };
    expect(await sign('alice', derived, rsa.id)).toMatchObject({
      status: 422,
      body: { code: 'DERIVATION_UNSUPPORTED' },
    });
  });

  test('keys of dedicated contexts do not sign chosen bytes: by name, by raw path, over HTTP and gRPC', async () => {
    const names = [
      'platform:blueprint-publish',
      'platform:persona-vault',
      'platform:credential-holder-binding',
      'platform:haip-issuer-signing',
      'platform:tenant-ca-signing',
      'platform:citizen-holder',
      'platform:citizen-status-signing',
      'platform:payload-encryption',
      'platform:status-list-signing',
    ];
    const slots = names.map((_name, index) => 103 + index);
    const paths = slots.flatMap((slot) => [
      `m/44'/0'/0'/0'/${slot}'`,
      `m/44h/0h/0h/0h/${slot}h`,
      `m/44H/0'/0h/0'/${slot}H`,
      `m/44'/0'/0'/0'/${slot}'/0'`,
    ]);
    for (const keyType of ['ED25519', 'NISTP256']) {
      const wallet = await client.made('alice', keyType);
      const subject = rpcContext('service-register', { subject: alice });
      for (const derivationPath of [...names, ...paths]) {
        const body = { data: randomBytes(32).toString('base64'), algorithm: keyType, derivationPath };
        for (const prefix of ['/api/wallets', '/api/v1/wallets']) {
          expect(await client.call('alice', `POST ${prefix}/${wallet.id}/sign`, { body })).toMatchObject({
            status: 403,
            body: { code: 'DERIVATION_CONTEXT_RESERVED' },
          });
        }
        const request = {
          walletAddress: wallet.walletAddress,
          digest: randomBytes(32),
          derivationContext: derivationPath,
        };
        await expect(
          walletHandlers(replica.deps).signDigest(request as never, subject),
        ).rejects.toMatchObject({ code: 'DERIVATION_CONTEXT_RESERVED' });
      }
      const data = randomBytes(8).toString('base64');
      for (const derivationPath of [ATTESTATION, "m/44'/0'/0'/0'/100'", "m/44'/0'/0'/0'/7'"]) {
        const body = { data, algorithm: keyType, derivationPath };
        expect((await client.call('alice', `POST /api/wallets/${wallet.id}/sign`, { body })).status).toBe(
          200,
        );
      }
    }
  });

  test('a locked wallet neither signs nor decrypts, even with its key in the cache', async () => {
    const wallet = await client.made('alice');
    const body = { data: 'AAAA', algorithm: 'ED25519' };
    expect((await client.call('alice', `POST /api/wallets/${wallet.id}/sign`, { body })).status).toBe(200);
    const message = { data: 'x', recipientWalletId: wallet.id };
    const sealed = await client.call('alice', `POST /api/wallets/${wallet.id}/encrypt`, { body: message });
    await replica.db.pool.query(`UPDATE wallets SET status = 'Locked' WHERE id = $1`, [wallet.id]);
    const locked = { status: 423, body: { code: 'WALLET_LOCKED' } };
    expect(await client.call('alice', `POST /api/wallets/${wallet.id}/sign`, { body })).toMatchObject(locked);
    const sealedBody = { encryptedData: sealed.body.encryptedData };
    expect(
      await client.call('alice', `POST /api/wallets/${wallet.id}/decrypt`, { body: sealedBody }),
    ).toMatchObject(locked);
  });

  test('tampered key material and a key of another wallet answer 500 and never sign', async () => {
    const [wallet, other, third] = [
      await client.made('alice'),
      await client.made('alice'),
      await client.made('alice'),
    ];
    const sign = (id: string) =>
      client.call('alice', `POST /api/wallets/${id}/sign`, { body: { data: 'AAAA', algorithm: 'ED25519' } });
    await replica.db.pool.query(
      `UPDATE wallet_secrets SET sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1) WHERE wallet_id = $1`,
      [wallet.id],
    );
    await replica.db.pool.query(
      `UPDATE wallet_secrets SET (wrapped_key, sealed) = (SELECT wrapped_key, sealed FROM wallet_secrets WHERE wallet_id = $2) WHERE wallet_id = $1`,
      [other.id, third.id],
    );
    for (const [id, code] of [
      [wallet.id, 'CUSTODY_TAMPERED'],
      [other.id, 'CUSTODY_TAMPERED'],
    ] as const) {
      expect(await sign(id)).toMatchObject({ status: 500, body: { code: 'INTERNAL_ERROR' } });
      expect(JSON.stringify(replica.runtime.lines)).toContain(code);
    }
    await replica.db.pool.query('UPDATE wallets SET public_key = $2 WHERE id = $1', [
      third.id,
      randomBytes(32),
    ]);
    expect((await sign(third.id)).status).toBe(500);
    expect(JSON.stringify(replica.runtime.lines)).toContain('does not belong to the wallet');
  });

  describe('gRPC', () => {
    test('FindWallets, ListSubjectWallets and SignDigest', async () => {
      const erin = person();
      client.callers.set('erin', erin);
      const first = await client.made('erin', 'NISTP256');
      replica.clock.advance(1);
      const second = await client.made('erin');
      const handlers = walletHandlers(replica.deps);
      const context = rpcContext('service-register', { subject: erin });
      const addresses = [first.walletAddress, 'w1unknown', second.walletAddress];
      const found = await handlers.findWallets({ addresses } as never, rpcContext('service-register'));
      expect(found.wallets?.map((each) => each.walletAddress).toSorted()).toEqual(
        [first.walletAddress, second.walletAddress].toSorted(),
      );
      const listed = await handlers.listSubjectWallets({} as never, context);
      expect(listed.wallets).toMatchObject([
        { walletAddress: first.walletAddress, publicKey: first.publicKey, algorithm: 'NISTP256' },
        { walletAddress: second.walletAddress },
      ]);
      const digest = randomBytes(32);
      for (const wallet of [first, second]) {
        const request = { walletAddress: wallet.walletAddress, digest, derivationContext: '' } as never;
        const { signature, key } = await handlers.signDigest(request, context);
        expect(key).toMatchObject({ publicKey: wallet.publicKey, walletAddress: wallet.walletAddress });
        const check = {
          algorithm: wallet.algorithm,
          publicKey: Buffer.from(wallet.publicKey, 'base64'),
          digest,
          signature: signature ?? new Uint8Array(),
        };
        expect(replica.deps.verifier.verifyDigest(check)).toBe(true);
      }
      const request = { walletAddress: second.walletAddress, digest, derivationContext: '' };
      const stranger = rpcContext('service-register', { subject: bob });
      await expect(handlers.signDigest(request as never, stranger)).rejects.toMatchObject({
        kind: 'forbidden',
      });
      await expect(
        handlers.signDigest(request as never, rpcContext('service-register')),
      ).rejects.toMatchObject({ kind: 'unauthenticated' });
      const short = { ...request, digest: randomBytes(31) };
      await expect(handlers.signDigest(short as never, context)).rejects.toMatchObject({
        code: 'PREHASH_LENGTH',
      });
    });
  });
});
