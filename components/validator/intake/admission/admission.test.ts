import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256Hex } from '#core/crypto/hash.ts';
import { AppError } from '#core/errors/errors.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testBounds } from '../../testing/bounds.ts';
import { testKey } from '../../testing/keys.ts';
import { ownerKey, systemKey, userKey, World } from '../../testing/world.ts';

const minutes = 60_000;
const world = new World();
beforeAll(async () => {
  await world.open();
  await world.begin();
});
afterAll(() => world.remove());

/** All accepted transactions are stored. */
function settled(): Promise<unknown> {
  return waitFor(() => world.register.pool.isEmpty && world.register.facts.unstored === 0, {
    what: 'everything to be stored',
  });
}

async function refusal(text: string, isRegisterService = false) {
  const before = world.ledger.sealed.size;
  const { status, body, retryAfterSeconds } = await world.submit(text, isRegisterService);
  expect(world.ledger.sealed.size).toBe(before);
  return { status, code: body['code'], body, retryAfterSeconds };
}

describe('tampered submissions are refused', () => {
  it('a wrong payload hash', async () => {
    const draft = world.sign({ tamper: { Payload: { note: 'other' } } });
    expect(await refusal(draft.text)).toMatchObject({ status: 400, code: 'VAL_HASH_001' });
  });

  it('a wrong signature, and a signature by another key', async () => {
    const honest = JSON.parse(world.sign().text);
    const [signature] = honest.Signatures;
    const flipped = Buffer.from(signature.SignatureValue, 'base64');
    flipped[9] = (flipped[9] ?? 0) ^ 1;
    const forged = [
      { ...signature, SignatureValue: flipped.toString('base64') },
      { ...signature, PublicKey: ownerKey.publicKey },
    ];
    for (const each of forged) {
      const answer = await refusal(world.sign({ tamper: { Signatures: [each] } }).text);
      expect(answer).toMatchObject({ status: 400, code: 'VAL_SIG_002' });
      expect(answer.body).toMatchObject({
        isValid: false,
        added: false,
        errors: [{ field: 'Signatures[0]' }],
      });
    }
  });

  it('a used id with another payload, pooled and sealed', async () => {
    await world.engine.setMode(world.register.id, 'Paused');
    const first = world.sign({ payload: { n: 1 } });
    expect((await world.submit(first.text)).status).toBe(200);
    const same = await world.submit(first.text);
    expect(same).toMatchObject({ status: 200, body: { added: false, alreadyKnown: true } });
    const other = forge(first.txId, { n: 2 });
    expect(await refusal(other)).toMatchObject({ status: 409, code: 'TX_CONFLICT' });
    await world.engine.setMode(world.register.id, 'Running');
    await world.sealed(world.ledger.sealed.size + 1);
    expect(await refusal(other)).toMatchObject({ status: 409, code: 'TX_CONFLICT' });
    expect(await world.submit(first.text)).toMatchObject({
      status: 200,
      body: { added: false, alreadyKnown: true },
    });
  });

  it('an unknown predecessor and a second successor of one Action', async () => {
    const orphan = world.sign({ previous: 'ab'.repeat(32) });
    expect(await refusal(orphan.text)).toMatchObject({ status: 422, code: 'VAL_CHAIN_001' });
    const parent = world.sign({ payload: { role: 'parent' } });
    const child = world.sign({ payload: { role: 'first' }, previous: parent.txId });
    const twin = world.sign({ payload: { role: 'second' }, previous: parent.txId });
    await world.engine.setMode(world.register.id, 'Paused');
    for (const { text } of [parent, child]) expect((await world.submit(text)).status).toBe(200);
    expect(await refusal(twin.text)).toMatchObject({ status: 422, code: 'VAL_CHAIN_FORK' });
    await world.engine.setMode(world.register.id, 'Running');
    await settled();
    expect(await refusal(twin.text)).toMatchObject({ status: 422, code: 'VAL_CHAIN_FORK' });
  });

  it('expired, too old and future timestamps', async () => {
    const now = Date.now();
    const expired = world.sign({
      createdAtMs: now,
      tamper: { ExpiresAt: new Date(now - 1000).toISOString() },
    });
    expect(await refusal(expired.text)).toMatchObject({ status: 400, code: 'VAL_TIME_003' });
    const future = world.sign({ createdAtMs: now + 6 * minutes });
    expect(await refusal(future.text)).toMatchObject({ status: 400, code: 'VAL_TIME_001' });
    const old = world.sign({ createdAtMs: now - 25 * 60 * minutes });
    expect(await refusal(old.text)).toMatchObject({ status: 400, code: 'VAL_TIME_002' });
  });

  it('the label Control from an unauthorised key, and Genesis from a client', async () => {
    const control = world.sign({ metadata: { Type: 'Control' } });
    expect(await refusal(control.text)).toMatchObject({ status: 403, code: 'VAL_PERM_001' });
    const genesis = world.sign({ metadata: { Type: 'Genesis' } });
    expect(await refusal(genesis.text)).toMatchObject({ status: 403, code: 'VAL_PERM_002' });
    const again = world.sign({ key: systemKey, metadata: { Type: 'Genesis' } });
    expect(await refusal(again.text)).toMatchObject({ status: 403, code: 'VAL_PERM_002' });
    const owner = world.sign({ key: ownerKey, metadata: { Type: 'Control' }, payload: { c: 1 } });
    expect((await world.submit(owner.text)).status).toBe(200);
    await settled();
  });

  /** Another payload under a used id, correctly signed. */
  function forge(txId: string, payload: unknown): string {
    const other = JSON.parse(world.sign({ payload }).text);
    const signature = userKey.sign(signingDigest(txId, other.PayloadHash));
    other.Signatures[0].SignatureValue = Buffer.from(signature).toString('base64');
    return JSON.stringify({ ...other, TransactionId: txId });
  }
});

describe('a malformed submission', () => {
  const cases: [string, () => string, string][] = [
    ['malformed JSON', () => '{"TransactionId":', 'VAL_STRUCT_012'],
    ['duplicate keys', () => world.sign().text.replace('{', '{"RegisterId":"x",'), 'VAL_STRUCT_012'],
    [
      'both spellings of a name',
      () => world.sign().text.replace('{', '{"registerId":"x",'),
      'VAL_STRUCT_012',
    ],
    ['an array', () => '[]', 'VAL_STRUCT_007'],
    [
      'no payload',
      () => JSON.stringify({ ...JSON.parse(world.sign().text), Payload: undefined }),
      'VAL_STRUCT_001',
    ],
    ['a short id', () => world.sign({ tamper: { TransactionId: 'ab' } }).text, 'VAL_STRUCT_002'],
    ['a register id that is none', () => world.sign({ tamper: { RegisterId: 'z' } }).text, 'VAL_STRUCT_003'],
    ['no signatures', () => world.sign({ tamper: { Signatures: [] } }).text, 'VAL_STRUCT_005'],
    ['a date that is none', () => world.sign({ tamper: { CreatedAt: 'yesterday' } }).text, 'VAL_STRUCT_006'],
    [
      'metadata that is no map of texts',
      () => world.sign({ tamper: { Metadata: { a: 1 } } }).text,
      'VAL_STRUCT_007',
    ],
    ['a bad recipient', () => world.sign({ tamper: { Recipients: ['w1nope'] } }).text, 'VAL_STRUCT_009'],
    ['an unknown priority', () => world.sign({ tamper: { Priority: 'Huge' } }).text, 'VAL_STRUCT_007'],
  ];
  for (const [name, text, code] of cases) {
    it(`${name} is ${code}`, async () => {
      expect(await refusal(text())).toMatchObject({ status: 400, code });
    });
  }

  it('other algorithms and malformed keys are refused', async () => {
    const [signature] = JSON.parse(world.sign().text).Signatures;
    const answers = [
      { ...signature, Algorithm: 'ed25519' },
      { ...signature, PublicKey: '!!' },
    ].map((each) => refusal(world.sign({ tamper: { Signatures: [each] } }).text));
    expect((await Promise.all(answers)).map(({ code }) => code)).toEqual(['VAL_SIG_001', 'VAL_SIG_003']);
  });

  it("camelCase, base64url keys and a compact payload in the client's order are accepted", async () => {
    const payload = '{"z":1.50,"a":"\\u0041"}';
    const payloadHash = sha256Hex(payload);
    const transactionId = sha256Hex('a free id');
    const key = testKey(5);
    const signatureValue = Buffer.from(key.sign(signingDigest(transactionId, payloadHash))).toString(
      'base64url',
    );
    const publicKey = Buffer.from(key.publicKey, 'base64').toString('base64url');
    const members = {
      transactionId,
      registerId: world.register.id,
      payloadHash,
      signatures: [{ publicKey, signatureValue, algorithm: 'ED25519' }],
      createdAt: new Date().toISOString(),
    };
    const spaced = payload.replace(',', ' , ');
    const answer = await world.submit(`${JSON.stringify(members).slice(0, -1)}, "payload": ${spaced} }`);
    expect(answer).toMatchObject({ status: 200, body: { added: true } });
    const stored = await waitFor(() => world.ledger.sealed.get(transactionId));
    expect(stored).toMatchObject({ payloadHashForm: 'compact', senderAddress: key.address });
    expect(Buffer.from(stored.payload).toString()).toBe(payload);
    expect(JSON.parse(Buffer.from(stored.record).toString())).toMatchObject({ bound: false });
  });

  it('a submission that is too large is refused', async () => {
    const answer = await refusal(world.sign({ payload: { blob: 'x'.repeat(600_000) } }).text);
    expect(answer).toMatchObject({ status: 413, code: 'VAL_SIZE_001' });
  });

  it('a submission for an unknown register is refused', async () => {
    const answer = await refusal(world.sign({ registerId: 'ff'.repeat(16) }).text);
    expect(answer).toMatchObject({ status: 404, code: 'REGISTER_NOT_FOUND' });
  });
});

describe('concurrency and outages', () => {
  it('exactly one of 50 concurrent successors of one predecessor is sealed', async () => {
    const parent = world.sign({ payload: { race: 'parent' } });
    await world.submit(parent.text);
    const children = Array.from({ length: 50 }, (_, index) =>
      world.sign({ payload: { index }, previous: parent.txId }),
    );
    const answers = await Promise.all(children.map(({ text }) => world.submit(text)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ body }) => body['code'] === 'VAL_CHAIN_FORK')).toHaveLength(49);
    const winner = children[answers.findIndex(({ status }) => status === 200)];
    await waitFor(() => world.ledger.sealed.has(winner?.txId ?? ''));
  });

  it('exactly one of many identical submissions is new', async () => {
    const { text } = world.sign({ payload: { same: true } });
    const answers = await Promise.all(Array.from({ length: 20 }, () => world.submit(text)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(answers.filter(({ body }) => body['added'] === true)).toHaveLength(1);
  });

  it('one lookup serves a whole batch', async () => {
    const before = world.ledger.lookups;
    const drafts = Array.from({ length: 100 }, (_, index) => world.sign({ payload: { batch: index } }));
    const answers = await Promise.all(drafts.map(({ text }) => world.submit(text)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(world.ledger.lookups - before).toBeLessThanOrEqual(2);
  });

  it('admission fails closed when the register service is unavailable', async () => {
    world.register.keys.discard();
    world.ledger.before = (call) => {
      if (call === 'lookup') throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'gone');
    };
    const draft = world.sign({ payload: { closed: true } });
    const answer = await refusal(draft.text);
    expect(answer).toMatchObject({ status: 503, code: 'VAL_CHAIN_TRANSIENT', retryAfterSeconds: 1 });
    world.ledger.before = () => {};
    expect((await world.submit(draft.text)).status).toBe(200);
  });

  it('a transaction that was stored during its lookup is not admitted again', async () => {
    world.register.keys.discard();
    const draft = world.sign({ payload: { slow: true } });
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const { lookup } = world.ledger;
    world.ledger.lookup = async (queries) => {
      const stale = await lookup(queries);
      asked.resolve();
      await gate.promise;
      return stale;
    };
    const late = world.submit(draft.text);
    await asked.promise;
    world.ledger.lookup = lookup;
    expect((await world.submit(draft.text)).status).toBe(200);
    await waitFor(() => world.ledger.sealed.has(draft.txId));
    gate.resolve();
    expect(await late).toMatchObject({ status: 200, body: { added: false, alreadyKnown: true } });
  });
});

describe('a full pool', () => {
  it('answers 429 with Retry-After per sender and per register, keeps the control lane open, and seals it first', async () => {
    const small = new World({
      bounds: { ...testBounds, maxTransactions: 300, maxControlTransactions: 5 },
    });
    try {
      await small.open();
      await small.begin();
      await small.engine.setMode(small.register.id, 'Paused');
      const fill = async (seed: number, count: number) => {
        const drafts = Array.from({ length: count }, (_, index) =>
          small.sign({ key: testKey(seed), payload: { seed, index } }),
        );
        return Promise.all(drafts.map(({ text }) => small.submit(text)));
      };
      const first = await fill(20, 257);
      expect(first.filter(({ status }) => status === 200)).toHaveLength(256);
      expect(first.find(({ status }) => status === 429)).toMatchObject({
        retryAfterSeconds: 1,
        body: { code: 'MEMPOOL_FULL' },
      });
      const second = await fill(21, 45);
      expect(second.filter(({ status }) => status === 200)).toHaveLength(44);
      expect(second.filter(({ status }) => status === 429)).toHaveLength(1);
      const control = small.sign({ key: ownerKey, metadata: { Type: 'Control' } });
      expect((await small.submit(control.text)).status).toBe(200);
      expect(small.register.pool.size).toBe(301);
      await small.engine.setMode(small.register.id, 'Running');
      await small.sealed(302);
      expect(small.ledger.dockets[1]?.docket.header.transactionIds[0]).toBe(control.txId);
      expect(small.register.pool).toMatchObject({ size: 0, bytes: 0, heldBytes: 0, isEmpty: true });
    } finally {
      await small.remove();
    }
  });

  it('is bounded in bytes', async () => {
    const small = new World({ bounds: { ...testBounds, maxBytes: 5_000 } });
    try {
      await small.open();
      await small.begin();
      await small.engine.setMode(small.register.id, 'Paused');
      const one = small.sign({ payload: { blob: 'x'.repeat(3_000) } });
      const two = small.sign({ payload: { blob: 'y'.repeat(3_000) } });
      expect((await small.submit(one.text)).status).toBe(200);
      expect(await small.submit(two.text)).toMatchObject({ status: 429, body: { bound: 'bytes' } });
    } finally {
      await small.remove();
    }
  });
});
